"""Elementwise functions of two operands and three."""

from relax_egraph.errors import IllTyped
from relax_egraph.ir.op import op
from relax_egraph.ir.ops.broadcast import broadcast, floating, numeric
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo, tensor


@op(elementwise=True)
def add(x: TensorStructInfo, y: TensorStructInfo) -> StructInfo:
    """``out = x + y``."""
    return broadcast("add", x, y)


@op(elementwise=True)
def subtract(x: TensorStructInfo, y: TensorStructInfo) -> StructInfo:
    """``out = x - y``, of numbers."""
    for operand in (x, y):
        numeric("subtract", operand)
    return broadcast("subtract", x, y)


@op(elementwise=True)
def multiply(x: TensorStructInfo, y: TensorStructInfo) -> StructInfo:
    """``out = x · y``."""
    return broadcast("multiply", x, y)


@op(elementwise=True)
def divide(x: TensorStructInfo, y: TensorStructInfo) -> StructInfo:
    """``out = x / y``, of floating-point tensors."""
    for operand in (x, y):
        floating("divide", operand)
    return broadcast("divide", x, y)


@op(elementwise=True)
def power(x: TensorStructInfo, y: TensorStructInfo) -> StructInfo:
    """``out = x ^ y``, of floating-point tensors."""
    for operand in (x, y):
        floating("power", operand)
    return broadcast("power", x, y)


@op(elementwise=True)
def maximum(x: TensorStructInfo, y: TensorStructInfo) -> StructInfo:
    """``out = max(x, y)``; NaN if either is NaN."""
    return broadcast("maximum", x, y)


@op(elementwise=True)
def minimum(x: TensorStructInfo, y: TensorStructInfo) -> StructInfo:
    """``out = min(x, y)``; NaN if either is NaN."""
    return broadcast("minimum", x, y)


@op(elementwise=True)
def greater(x: TensorStructInfo, y: TensorStructInfo) -> StructInfo:
    """``out = x > y``, boolean."""
    return broadcast("greater", x, y, dtype="bool")


@op(elementwise=True)
def less(x: TensorStructInfo, y: TensorStructInfo) -> StructInfo:
    """``out = x < y``, boolean."""
    return broadcast("less", x, y, dtype="bool")


@op(elementwise=True)
def equal(x: TensorStructInfo, y: TensorStructInfo) -> StructInfo:
    """``out = (x = y)``, boolean."""
    return broadcast("equal", x, y, dtype="bool")


@op(elementwise=True)
def ewise_fma(x: TensorStructInfo, y: TensorStructInfo, z: TensorStructInfo) -> StructInfo:
    """``out = x · y + z``."""
    return broadcast("ewise_fma", x, y, z)


@op(elementwise=True)
def where(condition: TensorStructInfo, x: TensorStructInfo, y: TensorStructInfo) -> StructInfo:
    """``out = x`` where the boolean `condition` holds, else ``y``."""
    if condition.dtype not in (None, "bool"):
        raise IllTyped(f"R.where: operand condition is {condition}, needs a boolean tensor")
    chosen = broadcast("where", x, y)
    shaped = broadcast("where", tensor(condition.dims, chosen.dtype, condition.ndim), chosen)
    return tensor(shaped.dims, chosen.dtype, shaped.ndim)
