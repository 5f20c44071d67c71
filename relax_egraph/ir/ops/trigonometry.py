"""Sines, arcs and hyperbolic functions: elementwise, of floating-point tensors, in radians."""

from relax_egraph.ir.op import op
from relax_egraph.ir.ops.broadcast import broadcast, floating
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo


@op(elementwise=True)
def sin(x: TensorStructInfo) -> StructInfo:
    """``out = sin x``."""
    return floating("sin", x)


@op(elementwise=True)
def cos(x: TensorStructInfo) -> StructInfo:
    """``out = cos x``."""
    return floating("cos", x)


@op(elementwise=True)
def tan(x: TensorStructInfo) -> StructInfo:
    """``out = tan x``."""
    return floating("tan", x)


@op(elementwise=True)
def asin(x: TensorStructInfo) -> StructInfo:
    """``out = arcsin x``, from -π/2 to π/2; NaN outside of ±1."""
    return floating("asin", x)


@op(elementwise=True)
def acos(x: TensorStructInfo) -> StructInfo:
    """``out = arccos x``, from 0 to π; NaN outside of ±1."""
    return floating("acos", x)


@op(elementwise=True)
def atan(x: TensorStructInfo) -> StructInfo:
    """``out = arctan x``, from -π/2 to π/2."""
    return floating("atan", x)


@op(elementwise=True)
def atan2(x: TensorStructInfo, y: TensorStructInfo) -> StructInfo:
    """``out = arctan(x / y)`` in the quadrant of the point ``(y, x)``, from -π to π."""
    for operand in (x, y):
        floating("atan2", operand)
    return broadcast("atan2", x, y)


@op(elementwise=True)
def sinh(x: TensorStructInfo) -> StructInfo:
    """``out = (eˣ - e⁻ˣ) / 2``."""
    return floating("sinh", x)


@op(elementwise=True)
def cosh(x: TensorStructInfo) -> StructInfo:
    """``out = (eˣ + e⁻ˣ) / 2``."""
    return floating("cosh", x)


@op(elementwise=True)
def asinh(x: TensorStructInfo) -> StructInfo:
    """``out = ln(x + √(x² + 1))``."""
    return floating("asinh", x)


@op(elementwise=True)
def acosh(x: TensorStructInfo) -> StructInfo:
    """``out = ln(x + √(x² - 1))``; NaN below 1."""
    return floating("acosh", x)


@op(elementwise=True)
def atanh(x: TensorStructInfo) -> StructInfo:
    """``out = ½ ln((1 + x) / (1 - x))``; NaN outside of ±1."""
    return floating("atanh", x)
