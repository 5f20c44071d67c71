"""Rounding to integers, clamping to a range, tests for NaN and infinity: elementwise."""

import math

from relax_egraph.errors import IllTyped
from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.op import op
from relax_egraph.ir.ops.broadcast import numeric
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo, tensor


@op(elementwise=True)
def ceil(x: TensorStructInfo) -> StructInfo:
    """``out = ⌈x⌉``; integers stay as they are."""
    return tensor(x.dims, x.dtype, x.ndim)


@op(elementwise=True)
def floor(x: TensorStructInfo) -> StructInfo:
    """``out = ⌊x⌋``; integers stay as they are."""
    return tensor(x.dims, x.dtype, x.ndim)


@op(elementwise=True)
def round_(x: TensorStructInfo) -> StructInfo:
    """``out`` is the integer nearest to `x`, of two the even one; integers stay as they are."""
    return tensor(x.dims, x.dtype, x.ndim)


@op(elementwise=True)
def trunc(x: TensorStructInfo) -> StructInfo:
    """``out = x`` rounded towards 0; integers stay as they are."""
    return tensor(x.dims, x.dtype, x.ndim)


@op(elementwise=True)
def sign(x: TensorStructInfo) -> StructInfo:
    """``out`` is 1, 0 or -1 as `x` is above, at or below 0; NaN of NaN."""
    numeric("sign", x)
    return tensor(x.dims, x.dtype, x.ndim)


@op(elementwise=True)
def clip(x: TensorStructInfo, *, min: float, max: float) -> StructInfo:
    """``out`` is the number between `min` and `max` nearest to `x`: `max`, if it is below `min`.

    Bounds of integers are whole or infinite; beyond the dtype's range they are its ends.
    """
    numeric("clip", x)
    for bound in (min, max):
        if math.isnan(bound):
            raise IllTyped(f"R.clip of {x}: a bound is nan, needs a number")
        whole = math.isinf(bound) or bound.is_integer()
        if not whole and x.dtype is not None and not is_float(x.dtype):
            raise IllTyped(f"R.clip of {x}: a bound is {bound}, needs a whole number")
    return tensor(x.dims, x.dtype, x.ndim)


@op(elementwise=True)
def isfinite(x: TensorStructInfo) -> StructInfo:
    """``out`` is whether `x` is neither infinite nor NaN, boolean."""
    return tensor(x.dims, "bool", x.ndim)


@op(elementwise=True)
def isinf(x: TensorStructInfo) -> StructInfo:
    """``out`` is whether `x` is infinite, boolean."""
    return tensor(x.dims, "bool", x.ndim)


@op(elementwise=True)
def isnan(x: TensorStructInfo) -> StructInfo:
    """``out`` is whether `x` is NaN, boolean."""
    return tensor(x.dims, "bool", x.ndim)
