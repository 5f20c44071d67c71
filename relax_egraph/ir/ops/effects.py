"""The intrinsics that print or fail, and the null value."""

from relax_egraph.errors import IllTyped
from relax_egraph.ir.expr import Call, StringImm
from relax_egraph.ir.op import intrinsic
from relax_egraph.ir.struct_info import (
    ObjectStructInfo,
    PrimStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)

_NOTHING = TupleStructInfo(())


@intrinsic(pure=False)
def print_(call: Call) -> StructInfo:
    """``R.print(*values, format="")``: print the format, the values in place of its ``{}``."""
    _format("print", call, 0)
    return _NOTHING


@intrinsic(pure=False)
def assert_op(call: Call) -> StructInfo:
    """``R.assert_op(condition, *values, format="")``: fail with that message unless it is true."""
    _format("assert_op", call, 1)
    match condition := call.args[0].struct_info:
        case TensorStructInfo(dtype="bool" | None, ndim=-1 | 0):
            pass
        case PrimStructInfo(dtype="bool") | ObjectStructInfo():
            pass
        case _:
            raise IllTyped(f'R.assert_op: the condition is {condition}, needs R.Tensor((), "bool")')
    return _NOTHING


@intrinsic()
def null_value(call: Call) -> StructInfo:
    """``R.null_value()``: stands for an optional operand of a packed function that is left out."""
    if call.args:
        raise IllTyped(f"R.null_value takes no operands, got {len(call.args)}")
    return ObjectStructInfo()


def _format(name: str, call: Call, place: int) -> None:
    if len(call.args) <= place or not isinstance(call.args[place], StringImm):
        raise IllTyped(f"R.{name}: operand {place} is no string: it is the format")
