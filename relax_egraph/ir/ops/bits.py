"""Elementwise functions of bits and of truth values."""

from relax_egraph.errors import IllTyped
from relax_egraph.ir.dtypes import is_integer
from relax_egraph.ir.op import op
from relax_egraph.ir.ops.broadcast import broadcast
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo, tensor


def _integers(name: str, *operands: TensorStructInfo, or_booleans: bool) -> TensorStructInfo:
    """The result of integer operands of one dtype; `or_booleans` admits booleans."""
    for x in operands:
        if x.dtype is None or is_integer(x.dtype) or (or_booleans and x.dtype == "bool"):
            continue
        needs = "integers or booleans" if or_booleans else "integers"
        raise IllTyped(f"R.{name} of {x}: needs a tensor of {needs}")
    return broadcast(name, *operands)


def _booleans(name: str, *operands: TensorStructInfo) -> TensorStructInfo:
    for x in operands:
        if x.dtype not in (None, "bool"):
            raise IllTyped(f"R.{name} of {x}: needs a boolean tensor")
    result = broadcast(name, *operands)
    return tensor(result.dims, "bool", result.ndim)


@op(elementwise=True)
def bitwise_not(x: TensorStructInfo) -> StructInfo:
    """``out = ~x``, each bit of an integer; of a boolean, not `x`."""
    return _integers("bitwise_not", x, or_booleans=True)


@op(elementwise=True)
def bitwise_and(x: TensorStructInfo, y: TensorStructInfo) -> StructInfo:
    """``out = x & y``, each bit of integers; of booleans, `x` and `y`."""
    return _integers("bitwise_and", x, y, or_booleans=True)


@op(elementwise=True)
def bitwise_or(x: TensorStructInfo, y: TensorStructInfo) -> StructInfo:
    """``out = x | y``, each bit of integers; of booleans, `x` or `y`."""
    return _integers("bitwise_or", x, y, or_booleans=True)


@op(elementwise=True)
def bitwise_xor(x: TensorStructInfo, y: TensorStructInfo) -> StructInfo:
    """``out = x ^ y``, each bit of integers; of booleans, either `x` or `y`."""
    return _integers("bitwise_xor", x, y, or_booleans=True)


@op(elementwise=True)
def left_shift(x: TensorStructInfo, y: TensorStructInfo) -> StructInfo:
    """``out = x · 2ʸ`` of integers, which wraps; 0 where `y` is negative, or the width or more."""
    return _integers("left_shift", x, y, or_booleans=False)


@op(elementwise=True)
def right_shift(x: TensorStructInfo, y: TensorStructInfo) -> StructInfo:
    """``out = ⌊x / 2ʸ⌋`` of integers; a negative `y` shifts as far as the width does."""
    return _integers("right_shift", x, y, or_booleans=False)


@op(elementwise=True)
def logical_not(x: TensorStructInfo) -> StructInfo:
    """``out`` is not `x`, of booleans."""
    return _booleans("logical_not", x)


@op(elementwise=True)
def logical_and(x: TensorStructInfo, y: TensorStructInfo) -> StructInfo:
    """``out`` is `x` and `y`, of booleans."""
    return _booleans("logical_and", x, y)


@op(elementwise=True)
def logical_or(x: TensorStructInfo, y: TensorStructInfo) -> StructInfo:
    """``out`` is `x` or `y`, of booleans."""
    return _booleans("logical_or", x, y)


@op(elementwise=True)
def logical_xor(x: TensorStructInfo, y: TensorStructInfo) -> StructInfo:
    """``out`` is either `x` or `y`, of booleans."""
    return _booleans("logical_xor", x, y)
