"""Searches: positions of extremes, places in sorted sequences."""

from relax_egraph.errors import IllTyped
from relax_egraph.ir.op import op
from relax_egraph.ir.ops.broadcast import numeric
from relax_egraph.ir.ops.reduce import chosen_of, reduced
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo, tensor


@op()
def argmax(x: TensorStructInfo, *, axis: int | None = None, keepdims: bool = False) -> StructInfo:
    """``out`` is the first index of ``max x`` along `axis`, or among all; NaN is the greatest."""
    return _position("argmax", x, axis, keepdims)


@op()
def argmin(x: TensorStructInfo, *, axis: int | None = None, keepdims: bool = False) -> StructInfo:
    """``out`` is the first index of ``min x`` along `axis`, or among all; NaN is the least."""
    return _position("argmin", x, axis, keepdims)


@op()
def bucketize(
    input_tensor: TensorStructInfo,
    boundaries: TensorStructInfo,
    *,
    out_int32: bool = False,
    right: bool = False,
) -> StructInfo:
    """``out`` counts the `boundaries` below each element, with `right` those equal to it too.

    NaN is above all numbers.  Of ascending boundaries that is where the element belongs.
    """
    operands = f"{input_tensor} and {boundaries}"
    if boundaries.ndim not in (-1, 1):
        raise IllTyped(f"R.bucketize of {operands}: needs boundaries of rank 1")
    if input_tensor.dtype and boundaries.dtype and input_tensor.dtype != boundaries.dtype:
        raise IllTyped(f"R.bucketize of {operands}: needs operands of one dtype")
    numeric("bucketize", input_tensor)
    dtype = "int32" if out_int32 else "int64"
    return tensor(input_tensor.dims, dtype, input_tensor.ndim)


def _position(name: str, x: TensorStructInfo, axis: int | None, keepdims: bool) -> TensorStructInfo:
    axes = None if axis is None else (axis,)
    chosen_of(name, x, axes)
    result = reduced(name, x, axes, keepdims)
    return tensor(result.dims, "int64", result.ndim)
