"""Elementwise functions of two operands and three."""

from relax_egraph.errors import IllTyped
from relax_egraph.ir.op import op
from relax_egraph.ir.ops.broadcast import broadcast, floating, numeric
from relax_egraph.ir.requirements import differ
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo, tensor


@op(elementwise=True)
def add(x: TensorStructInfo, y: TensorStructInfo) -> StructInfo:
    """``out = x + y``."""
    return broadcast("add", x, y)


@op(elementwise=True)
def ewise_add(x: TensorStructInfo, y: TensorStructInfo) -> StructInfo:
    """``out = x + y``, of tensors of one shape: nothing is broadcast."""
    known = broadcast("ewise_add", tensor(None, x.dtype), tensor(None, y.dtype))
    ranks = {i.ndim for i in (x, y) if i.ndim >= 0}
    both = x.dims is not None and y.dims is not None
    if len(ranks) > 1 or (both and any(map(differ, x.dims or (), y.dims or ()))):
        raise IllTyped(f"R.ewise_add of {x}, {y}: needs operands of one shape")
    return tensor(x.dims or y.dims, known.dtype, ranks.pop() if ranks else -1)


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
def floor_divide(x: TensorStructInfo, y: TensorStructInfo) -> StructInfo:
    """``out = ⌊x / y⌋``, of numbers; of integers 0 where `y` is 0."""
    for operand in (x, y):
        numeric("floor_divide", operand)
    return broadcast("floor_divide", x, y)


@op(elementwise=True)
def floor_mod(x: TensorStructInfo, y: TensorStructInfo) -> StructInfo:
    """``out = x - ⌊x / y⌋ · y``, with the sign of `y`; of integers 0 where `y` is 0."""
    for operand in (x, y):
        numeric("floor_mod", operand)
    return broadcast("floor_mod", x, y)


@op(elementwise=True)
def mod(x: TensorStructInfo, y: TensorStructInfo) -> StructInfo:
    """``out = x - trunc(x / y) · y``, with the sign of `x`; of integers 0 where `y` is 0.

    It is ``%`` of C, and of the script; that of Python is `floor_mod`.
    """
    for operand in (x, y):
        numeric("mod", operand)
    return broadcast("mod", x, y)


@op(elementwise=True)
def log_add_exp(x: TensorStructInfo, y: TensorStructInfo) -> StructInfo:
    """``out = ln(eˣ + eʸ)``, also where the powers overflow."""
    for operand in (x, y):
        floating("log_add_exp", operand)
    return broadcast("log_add_exp", x, y)


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
def greater_equal(x: TensorStructInfo, y: TensorStructInfo) -> StructInfo:
    """``out = x ≥ y``, boolean."""
    return broadcast("greater_equal", x, y, dtype="bool")


@op(elementwise=True)
def less_equal(x: TensorStructInfo, y: TensorStructInfo) -> StructInfo:
    """``out = x ≤ y``, boolean."""
    return broadcast("less_equal", x, y, dtype="bool")


@op(elementwise=True)
def not_equal(x: TensorStructInfo, y: TensorStructInfo) -> StructInfo:
    """``out = (x ≠ y)``, boolean."""
    return broadcast("not_equal", x, y, dtype="bool")


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
