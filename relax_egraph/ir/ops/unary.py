"""Elementwise functions of one operand."""

from relax_egraph.ir.op import op
from relax_egraph.ir.ops.broadcast import floating, numeric
from relax_egraph.ir.ops.dtypes import known_dtype
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo, tensor


@op(elementwise=True)
def abs_(x: TensorStructInfo) -> StructInfo:
    """``out = |x|``."""
    return tensor(x.dims, x.dtype, x.ndim)


@op(elementwise=True)
def negative(x: TensorStructInfo) -> StructInfo:
    """``out = -x``, of numbers."""
    numeric("negative", x)
    return tensor(x.dims, x.dtype, x.ndim)


@op(elementwise=True)
def square(x: TensorStructInfo) -> StructInfo:
    """``out = x²``, of numbers."""
    numeric("square", x)
    return tensor(x.dims, x.dtype, x.ndim)


@op(elementwise=True)
def exp(x: TensorStructInfo) -> StructInfo:
    """``out = eˣ``."""
    return floating("exp", x)


@op(elementwise=True)
def log(x: TensorStructInfo) -> StructInfo:
    """``out = ln x``."""
    return floating("log", x)


@op(elementwise=True)
def sqrt(x: TensorStructInfo) -> StructInfo:
    """``out = √x``."""
    return floating("sqrt", x)


@op(elementwise=True)
def rsqrt(x: TensorStructInfo) -> StructInfo:
    """``out = 1 / √x``."""
    return floating("rsqrt", x)


@op(elementwise=True)
def tanh(x: TensorStructInfo) -> StructInfo:
    """``out = tanh x``."""
    return floating("tanh", x)


@op(elementwise=True)
def erf(x: TensorStructInfo) -> StructInfo:
    """``out = 2/√π · ∫₀ˣ exp(-t²) dt``."""
    return floating("erf", x)


@op(elementwise=True)
def sigmoid(x: TensorStructInfo) -> StructInfo:
    """``out = 1 / (1 + e⁻ˣ)``."""
    return floating("sigmoid", x)


@op(elementwise=True)
def astype(x: TensorStructInfo, *, dtype: str) -> StructInfo:
    """``out = x`` converted to `dtype`; floats are truncated towards zero to integers.

    Of integers the lower bits are kept.  A float out of the integers' range becomes the nearer end
    of it, and NaN becomes 0.
    """
    return tensor(x.dims, known_dtype("astype", x, dtype), x.ndim)
