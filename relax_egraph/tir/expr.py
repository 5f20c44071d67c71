"""Scalar expressions of the loop language.

Index arithmetic is of dtype ``int64``.  Nodes are frozen; `TirVar` and `Buffer` compare by
identity.  Python's arithmetic operators and comparisons with `<`, `<=`, `>`, `>=` build nodes.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Literal, TypeAlias

import sympy

from relax_egraph.ir.dim_form import form
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.form import INTEGERS, Algebra, fold, leftward
from relax_egraph.ir.structural import SYMBOL
from relax_egraph.tir.functions import PREDICATES

BinaryKind: TypeAlias = Literal[
    "+", "-", "*", "/", "//", "%", "min", "max", "<", "<=", ">", ">=", "==", "!=", "and", "or"
]
"""``//`` and ``%`` round down, as in Python; ``/`` is of floats; ``min``/``max`` pass NaN on."""

COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!="})
LOGICAL = frozenset({"and", "or"})

Scope: TypeAlias = Literal["global", "local"]
"""The storage of a buffer: ``global`` in memory, ``local`` on the stack of the kernel."""


class _Arithmetic:
    """The operators of Python, as nodes."""

    __slots__ = ()

    def __add__(self, other: "Operand") -> "TirExpr":
        return binary("+", self, other)

    def __radd__(self, other: "Operand") -> "TirExpr":
        return binary("+", other, self)

    def __sub__(self, other: "Operand") -> "TirExpr":
        return binary("-", self, other)

    def __rsub__(self, other: "Operand") -> "TirExpr":
        return binary("-", other, self)

    def __mul__(self, other: "Operand") -> "TirExpr":
        return binary("*", self, other)

    def __rmul__(self, other: "Operand") -> "TirExpr":
        return binary("*", other, self)

    def __truediv__(self, other: "Operand") -> "TirExpr":
        return binary("/", self, other)

    def __rtruediv__(self, other: "Operand") -> "TirExpr":
        return binary("/", other, self)

    def __floordiv__(self, other: "Operand") -> "TirExpr":
        return binary("//", self, other)

    def __mod__(self, other: "Operand") -> "TirExpr":
        return binary("%", self, other)

    def __neg__(self) -> "TirExpr":
        return binary("-", 0, self)

    def __lt__(self, other: "Operand") -> "TirExpr":
        return binary("<", self, other)

    def __le__(self, other: "Operand") -> "TirExpr":
        return binary("<=", self, other)

    def __gt__(self, other: "Operand") -> "TirExpr":
        return binary(">", self, other)

    def __ge__(self, other: "Operand") -> "TirExpr":
        return binary(">=", self, other)


@dataclass(frozen=True, slots=True, eq=False)
class TirVar(_Arithmetic):
    """A scalar variable: a loop variable, a block axis, or a parameter of the function."""

    name: str
    dtype: str = "int64"


@dataclass(frozen=True, slots=True)
class DimSymbol(_Arithmetic):
    """A symbol of the function's dimensions, as an ``int64`` value."""

    name: str = field(metadata=SYMBOL)

    @property
    def dtype(self) -> str:
        """Always ``int64``."""
        return "int64"


@dataclass(frozen=True, slots=True)
class Imm(_Arithmetic):
    """A literal of `dtype`; ``bool`` literals are 0 and 1."""

    value: int | float
    dtype: str


@dataclass(frozen=True, slots=True)
class Binary(_Arithmetic):
    """``a <kind> b``; both operands are of one dtype; a comparison is of dtype ``bool``."""

    kind: BinaryKind
    a: "TirExpr"
    b: "TirExpr"

    @property
    def dtype(self) -> str:
        """The operands' dtype, or ``bool`` of a comparison."""
        return "bool" if self.kind in COMPARISONS or self.kind in LOGICAL else self.a.dtype


@dataclass(frozen=True, slots=True)
class Not(_Arithmetic):
    """``not a``."""

    a: "TirExpr"

    @property
    def dtype(self) -> str:
        """Always ``bool``."""
        return "bool"


@dataclass(frozen=True, slots=True)
class Cast(_Arithmetic):
    """`value` converted to `dtype`, as `ir.dtypes.converted` does."""

    dtype: str
    value: "TirExpr"


@dataclass(frozen=True, slots=True)
class Select(_Arithmetic):
    """``a if condition else b``.

    Both sides are evaluated, unless it is `lazy`: then the other side reads no memory, so that its
    indices may lie outside of a buffer.
    """

    condition: "TirExpr"
    a: "TirExpr"
    b: "TirExpr"
    lazy: bool = False

    @property
    def dtype(self) -> str:
        """The branches' dtype."""
        return self.a.dtype


@dataclass(frozen=True, slots=True)
class Intrinsic(_Arithmetic):
    """``T.name(args)``, one of `INTRINSICS`, of operands of one dtype."""

    name: str
    args: tuple["TirExpr", ...]

    @property
    def dtype(self) -> str:
        """The operands' dtype, or ``bool`` of one of `PREDICATES`."""
        return "bool" if self.name in PREDICATES else self.args[0].dtype


HANDLE = "handle"
"""The dtype of a parameter that a function passes on to nobody, and neither reads nor writes."""


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """A row-major, contiguous array of symbolic shape.  ``buf[i, j]`` reads an element.

    A parameter of dtype `HANDLE` is one of unknown shape and dtype; no element of it is used.
    """

    name: str
    shape: tuple[Dim, ...]
    dtype: str
    scope: Scope = "global"

    def __getitem__(self, indices: "Operand | tuple[Operand, ...]") -> "BufferLoad":
        several = indices if isinstance(indices, tuple) else (indices,)
        return BufferLoad(self, tuple(as_expr(i) for i in several))


@dataclass(frozen=True, slots=True)
class BufferLoad(_Arithmetic):
    """``buffer[indices]``."""

    buffer: Buffer
    indices: tuple["TirExpr", ...]

    @property
    def dtype(self) -> str:
        """The buffer's dtype."""
        return self.buffer.dtype


TirExpr: TypeAlias = (
    TirVar | DimSymbol | Imm | Binary | Not | Cast | Select | Intrinsic | BufferLoad
)

Operand: TypeAlias = TirExpr | _Arithmetic | int | float | sympy.Expr
"""Operands of Python's operators beside nodes: numbers take the dtype of the other side."""


def as_expr(value: Operand, dtype: str = "int64") -> TirExpr:
    """`value` as a node; a number becomes a literal of `dtype`, a dimension index arithmetic."""
    if isinstance(value, bool | int | float):
        return Imm(float(value) if is_float(dtype) else int(value), dtype)
    if isinstance(value, sympy.Expr):
        return from_dim(value)
    return value  # pyright: ignore[reportReturnType]  # a node: _Arithmetic is never built itself


def binary(kind: BinaryKind, a: Operand, b: Operand) -> TirExpr:
    """``a <kind> b``, with literals of the other side's dtype; folds trivial index arithmetic."""
    dtype = next((x.dtype for x in (a, b) if isinstance(x, _Arithmetic)), "int64")  # pyright: ignore
    left, right = as_expr(a, dtype), as_expr(b, dtype)
    if left.dtype != right.dtype:
        raise TypeError(f"{left.dtype} {kind} {right.dtype}: needs operands of one dtype")
    return _folded(kind, left, right) or Binary(kind, left, right)


def _folded(kind: BinaryKind, a: TirExpr, b: TirExpr) -> TirExpr | None:
    if a.dtype != "int64":
        return None
    zero, one = Imm(0, "int64"), Imm(1, "int64")
    if kind == "+" and zero in (a, b):
        return b if a == zero else a
    if kind == "*" and one in (a, b):
        return b if a == one else a
    if kind == "*" and zero in (a, b):
        return zero
    if (kind == "-" and b == zero) or (kind == "//" and b == one):
        return a
    if isinstance(a, Imm) and isinstance(b, Imm) and kind in INTEGERS:
        if b == zero and kind in ("//", "%"):
            return None
        result = INTEGERS[kind](int(a.value), int(b.value))
        return Imm(result, "int64") if -_END <= result < _END else None
    return None


_END = 1 << 63
"""The first number beyond ``int64``: arithmetic that wraps around is not folded."""


def from_dim(dim: Dim) -> TirExpr:
    """A dimension as index arithmetic over `DimSymbol`."""
    return fold(form(dim), _INDEX)


def _imm(value: int) -> TirExpr:
    return Imm(value, "int64")


def _negative(a: TirExpr) -> TirExpr:
    return Binary("-", _imm(0), a)


_KINDS: tuple[BinaryKind, ...] = ("+", "-", "*", "//", "%", "min", "max")
_INDEX: Algebra[TirExpr] = Algebra(
    _imm,
    DimSymbol,
    {"neg": _negative, **{kind: leftward(partial(binary, kind)) for kind in _KINDS}},
)
"""Index arithmetic."""
