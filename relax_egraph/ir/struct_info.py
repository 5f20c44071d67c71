"""Struct info: the static type of a value, with kind, rank, shape and dtype.

A tensor's shape is known in one of three ways: symbolically (`ShapeExpr`), as a
value computed at run time (a variable that holds a shape), or not at all
(``None``).  Unknown is always legal.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim

if TYPE_CHECKING:
    from relax_egraph.ir.expr import Expr

Shape: TypeAlias = tuple[Dim, ...]
"""The dimensions of a tensor of known shape."""


@dataclass(frozen=True, slots=True)
class ShapeExpr:
    """A shape of symbolic dimensions, as a value: ``R.shape([n, 4])``; an expression of the IR."""

    values: Shape

    @property
    def struct_info(self) -> "StructInfo":
        """The shape of this shape: its own dimensions."""
        return ShapeStructInfo(self.values, len(self.values))


@dataclass(frozen=True, slots=True)
class TensorStructInfo:
    """A tensor: ``R.Tensor((n, 784), "float32")``.

    `ndim` is -1 where the rank is unknown; `dtype` is ``None`` where it is unknown.
    """

    shape: "ShapeExpr | Expr | None" = None
    dtype: str | None = None
    ndim: int = -1

    @property
    def dims(self) -> Shape | None:
        """The symbolic shape, or ``None`` if it is not known symbolically."""
        return getattr(self.shape, "values", None)

    def __str__(self) -> str:
        known = self.dims
        parts: list[str] = []
        if known is not None:
            parts.append(shape_text(known))
        elif self.shape is not None:
            parts.append(getattr(self.shape, "name", "?"))
        if self.dtype is not None:
            parts.append(f'"{self.dtype}"' if parts else f'dtype="{self.dtype}"')
        if self.shape is None and self.ndim >= 0:
            parts.append(f"ndim={self.ndim}")
        return f"R.Tensor({', '.join(parts)})"


@dataclass(frozen=True, slots=True)
class ShapeStructInfo:
    """A shape as a value: ``R.Shape((n, 4))``, ``R.Shape(ndim=2)``."""

    values: Shape | None = None
    ndim: int = -1

    def __str__(self) -> str:
        if self.values is not None:
            return f"R.Shape({shape_text(self.values)})"
        return f"R.Shape(ndim={self.ndim})" if self.ndim >= 0 else "R.Shape"


@dataclass(frozen=True, slots=True)
class TupleStructInfo:
    """A tuple of values."""

    fields: tuple["StructInfo", ...]

    def __str__(self) -> str:
        return f"R.Tuple({', '.join(map(str, self.fields))})"


@dataclass(frozen=True, slots=True)
class PrimStructInfo:
    """A scalar of the host: ``R.Prim("int64")``, ``R.Prim(value=n)``.

    `number` is the value of a float literal that is an operand; rules alone see it.
    """

    dtype: str
    value: Dim | None = None
    number: float | None = None

    def __str__(self) -> str:
        if self.value is not None:
            return f"R.Prim(value={dims.text(self.value)})"
        return f'R.Prim("{self.dtype}")'


@dataclass(frozen=True, slots=True)
class ObjectStructInfo:
    """Anything at all."""

    def __str__(self) -> str:
        return "R.Object"


@dataclass(frozen=True, slots=True)
class FuncStructInfo:
    """A function; `params` is ``None`` where only the result is known."""

    params: tuple["StructInfo", ...] | None
    ret: "StructInfo"
    purity: bool = True

    def __str__(self) -> str:
        if self.params is None:
            return "R.Callable"
        params = ", ".join(map(str, self.params))
        comma = "," if len(self.params) == 1 else ""
        return f"R.Callable(({params}{comma}), {self.ret}, {self.purity})"


StructInfo: TypeAlias = (
    TensorStructInfo
    | ShapeStructInfo
    | TupleStructInfo
    | PrimStructInfo
    | ObjectStructInfo
    | FuncStructInfo
)


def shape_text(shape: Shape) -> str:
    """``(n, 4)``, ``(n,)``, ``()``: a shape as script writes it."""
    inside = ", ".join(map(dims.text, shape))
    return f"({inside},)" if len(shape) == 1 else f"({inside})"


def tensor(shape: Shape | None, dtype: str | None, ndim: int = -1) -> TensorStructInfo:
    """The struct info of a tensor of symbolic `shape`, or of unknown shape and rank `ndim`."""
    if shape is None:
        return TensorStructInfo(None, dtype, ndim)
    return TensorStructInfo(ShapeExpr(tuple(shape)), dtype, len(shape))


def known_extents(info: StructInfo) -> Shape:
    """The extents of a tensor, or the values of a shape; empty if they are unknown."""
    match info:
        case TensorStructInfo():
            return info.dims or ()
        case ShapeStructInfo(values=values):
            return values or ()
        case _:
            return ()


def symbols_of(info: StructInfo) -> frozenset[str]:
    """The names of the dimension symbols that occur in `info`."""
    match info:
        case TensorStructInfo():
            dimensions = info.dims or ()
        case ShapeStructInfo(values=values):
            dimensions = values or ()
        case PrimStructInfo(value=value):
            dimensions = () if value is None else (value,)
        case TupleStructInfo(fields=fields):
            return frozenset[str]().union(*map(symbols_of, fields))
        case FuncStructInfo(params=params, ret=ret):
            return symbols_of(ret).union(*map(symbols_of, params or ()))
        case ObjectStructInfo():
            return frozenset()
    return frozenset[str]().union(*map(dims.symbols, dimensions))
