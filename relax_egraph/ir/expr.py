"""The expressions, bindings and blocks of the IR, with the names of Relax.

All are frozen; functions elsewhere do the work.  Expressions compare by identity
(a variable *is* its object); `structural` compares programs by meaning.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from relax_egraph.errors import Span
from relax_egraph.ir import dims
from relax_egraph.ir.arithmetic import Arithmetic
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.dtypes import name_of
from relax_egraph.ir.struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    StructInfo,
    TupleStructInfo,
    tensor,
)
from relax_egraph.ir.struct_info import ShapeExpr as ShapeExpr
from relax_egraph.ir.text import Printed, Shown

if TYPE_CHECKING:
    from relax_egraph.ir.op import Op

Attr: TypeAlias = int | float | bool | str | tuple[int, ...] | tuple[float, ...] | None
"""The value of an attribute of an operator."""

Attrs: TypeAlias = Mapping[str, Attr]

FunctionAttr: TypeAlias = Attr | tuple[tuple[str, int], ...]
"""The value of an attribute of a function; pairs print as a dictionary."""

FunctionAttrs: TypeAlias = Mapping[str, FunctionAttr]

_OBJECT = ObjectStructInfo()


@dataclass(frozen=True, slots=True, eq=False)
class Var(Arithmetic):
    """A variable that the whole function sees."""

    name: str
    struct_info: StructInfo = _OBJECT

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, eq=False)
class DataflowVar(Var):
    """A variable that only its dataflow block sees."""

    __repr__ = Var.__repr__


@dataclass(frozen=True, slots=True, eq=False)
class Constant(Arithmetic):
    """A tensor known at compile time."""

    data: npt.NDArray[Any]

    @property
    def struct_info(self) -> StructInfo:
        """Shape and dtype of the data."""
        return tensor(self.data.shape, name_of(self.data.dtype))


@dataclass(frozen=True, slots=True)
class PrimValue:
    """A scalar of the host: a dimension, or a number."""

    value: Dim | float
    dtype: str = "int64"

    @property
    def struct_info(self) -> StructInfo:
        """The scalar's dtype, and its value if it is a dimension."""
        return PrimStructInfo(self.dtype, None if isinstance(self.value, float) else self.value)

    @property
    def constant(self) -> Constant | None:
        """The number as a tensor, if its dtype is not that of Python's numbers."""
        if self.dtype in ("int64", "float64") or not isinstance(self.value, int | float):
            return None
        return Constant(np.asarray(self.value, self.dtype))


@dataclass(frozen=True, slots=True)
class StringImm:
    """A string literal."""

    value: str

    @property
    def struct_info(self) -> StructInfo:
        """An opaque object."""
        return _OBJECT


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tuple(Printed):
    """A tuple of expressions."""

    fields: tuple["Expr", ...]

    @property
    def struct_info(self) -> StructInfo:
        """The tuple of the fields' struct info."""
        return TupleStructInfo(tuple(f.struct_info for f in self.fields))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TupleGetItem(Printed, Arithmetic):
    """Field `index` of a tuple."""

    tuple_value: "Expr"
    index: int

    @property
    def struct_info(self) -> StructInfo:
        """The field's struct info, or that of an object if the tuple is opaque."""
        info = self.tuple_value.struct_info
        return info.fields[self.index] if isinstance(info, TupleStructInfo) else _OBJECT


@dataclass(frozen=True, slots=True)
class GlobalVar:
    """A function of the module, by name."""

    name: str
    struct_info: StructInfo = field(default=_OBJECT, compare=False)


@dataclass(frozen=True, slots=True)
class ExternFunc:
    """A packed function, by its registered name."""

    name: str

    @property
    def struct_info(self) -> StructInfo:
        """An unknown function."""
        return FuncStructInfo(None, _OBJECT, purity=False)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Call(Printed, Arithmetic):
    """``op(args, **attrs)``.

    `struct_info` is set by `BlockBuilder.normalize`, by the operator's rule;
    `sinfo_args` are the caller's claims on the result (``call_tir``'s ``out_sinfo``).
    """

    op: "Op | GlobalVar | ExternFunc | Expr"
    args: tuple["Expr", ...]
    attrs: Attrs = field(default_factory=dict[str, Attr])
    sinfo_args: tuple[StructInfo, ...] = ()
    struct_info: StructInfo = _OBJECT
    span: Span | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class VarBinding(Printed):
    """``var = value``."""

    var: Var
    value: "Expr"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MatchCast(Printed):
    """``var = R.match_cast(value, struct_info)``: a run-time check of a claim.

    The first occurrence of a symbol binds it, others are compared.  If an operator would refuse
    the value, `refusal` is the operator's message: see `ir.templates`.
    """

    var: Var
    value: "Expr"
    struct_info: StructInfo
    span: Span | None = None
    refusal: str = ""


Binding: TypeAlias = VarBinding | MatchCast


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BindingBlock(Printed):
    """Bindings in order of execution; effects are allowed."""

    bindings: tuple[Binding, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DataflowBlock(Printed):
    """Bindings without effects or control flow: a graph."""

    bindings: tuple[Binding, ...]


Block: TypeAlias = BindingBlock | DataflowBlock


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SeqExpr(Printed):
    """Blocks, then a result."""

    blocks: tuple[Block, ...]
    body: "Expr"

    @property
    def struct_info(self) -> StructInfo:
        """The result's."""
        return self.body.struct_info


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class If(Printed):
    """``if cond: true_branch else: false_branch``; `cond` is a boolean scalar tensor."""

    cond: "Expr"
    true_branch: SeqExpr
    false_branch: SeqExpr
    struct_info: StructInfo = _OBJECT


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Function(Shown):
    """A function of the graph level.

    Attributes in use: ``primitive`` (the body is to become one kernel),
    ``private`` (not callable from outside the module), ``tir_var_upper_bound`` (pairs of a symbol
    and its upper bound, for the memory plan), ``tolerance`` (the error that results may have),
    ``anchor`` and ``seconds`` (the schedule and the price that extraction chose for the kernel),
    ``assume`` (conditions on sizes that its callers have checked, and that the kernel needs).
    """

    params: tuple[Var, ...]
    body: SeqExpr
    ret_struct_info: StructInfo
    is_pure: bool = True
    attrs: FunctionAttrs = field(default_factory=dict[str, FunctionAttr])

    @property
    def struct_info(self) -> StructInfo:
        """What a caller sees: parameters, result, purity."""
        params = tuple(p.struct_info for p in self.params)
        return FuncStructInfo(params, self.ret_struct_info, self.is_pure)


Expr: TypeAlias = (
    Var
    | Constant
    | ShapeExpr
    | PrimValue
    | StringImm
    | Tuple
    | TupleGetItem
    | GlobalVar
    | ExternFunc
    | Call
    | SeqExpr
    | If
    | Function
)


def const(value: Any, dtype: str | None = None) -> Constant:
    """A constant of `value`; unless `dtype` says, a float is float32 and an int is int32."""
    if dtype is None and not isinstance(value, np.ndarray | np.generic):
        value = np.asarray(value)
        dtype = {"f": "float32", "i": "int32", "b": "bool"}.get(value.dtype.kind)
    return Constant(np.asarray(value, dtype))


def shape(values: "tuple[Dim, ...] | list[Dim]") -> ShapeExpr:
    """The shape `values`, each dimension in canonical form."""
    return ShapeExpr(tuple(dims.canonical(v) for v in values))
