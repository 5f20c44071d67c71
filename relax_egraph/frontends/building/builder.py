"""`Builder`: emits calls of operators into the function that a front door builds."""

from abc import ABC, abstractmethod

from relax_egraph.errors import ModelError
from relax_egraph.ir.block_builder import call
from relax_egraph.ir.expr import Attr, Constant, Expr, TupleGetItem, const
from relax_egraph.ir.op import OPS
from relax_egraph.ir.run_time import run_time_call
from relax_egraph.ir.struct_info import Shape, StructInfo, TensorStructInfo, TupleStructInfo


class Builder(ABC):
    """What converters of all front doors emit calls with; a node of a model is one."""

    __slots__ = ()

    @abstractmethod
    def bind(self, value: Expr) -> Expr:
        """`value` bound to a variable."""

    def emit(self, op: str, *operands: Expr, **attrs: Attr) -> Expr:
        """``R.op(operands, **attrs)``, bound to a variable."""
        return self.bind(call(op, *operands, **attrs))

    def emit_late(self, op: str, *operands: Expr, out: StructInfo, **attrs: Attr | Expr) -> Expr:
        """The same, with attributes that are tensors at run time; the struct info is `out`.

        An integer is a tensor of rank 0, several are a tensor of rank 1.
        """
        return self.bind(run_time_call(OPS[op], operands, attrs, out))

    def fields(self, value: Expr) -> tuple[Expr, ...]:
        """The fields of a tuple."""
        info = value.struct_info
        if not isinstance(info, TupleStructInfo):
            raise ModelError(f"{info} is not a tuple")
        return tuple(self.bind(TupleGetItem(value, k)) for k in range(len(info.fields)))

    def scalar(self, value: float, dtype: str) -> Constant:
        """A constant of rank 0."""
        return const(value, dtype)

    def cast(self, value: Expr, dtype: str) -> Expr:
        """`value` in `dtype`."""
        return value if dtype_of(value) == dtype else self.emit("astype", value, dtype=dtype)


def info_of(value: Expr) -> TensorStructInfo:
    """The struct info of `value`, a tensor."""
    info = value.struct_info
    return info if isinstance(info, TensorStructInfo) else TensorStructInfo()


def dtype_of(value: Expr) -> str:
    """The dtype of `value`; raises `ModelError` if it is unknown or `value` is not a tensor."""
    dtype = info_of(value).dtype
    if dtype is None:
        raise ModelError(f"the dtype of {value.struct_info} is not known")
    return dtype


def shape_of(value: Expr) -> Shape:
    """The shape of `value`; raises `ModelError` if it is unknown or `value` is not a tensor."""
    shape = info_of(value).dims
    if shape is None:
        raise ModelError(f"the shape of {value.struct_info} is not known")
    return shape
