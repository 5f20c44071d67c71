"""Scans along an axis: cumulative sums and products."""

from relax_egraph.ir import dims
from relax_egraph.ir.op import op
from relax_egraph.ir.ops.dtypes import known_dtype
from relax_egraph.ir.ops.manipulate import normalize_axis
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo, tensor


@op()
def cumsum(
    data: TensorStructInfo,
    *,
    axis: int | None = None,
    dtype: str | None = None,
    exclusive: bool = False,
) -> StructInfo:
    """``out[i] = Σ data[k], k ≤ i`` along `axis`, or over all elements; ``k < i`` if `exclusive`.

    Elements are converted to `dtype` first; of booleans, whether any holds.
    """
    return _scanned("cumsum", data, axis, dtype)


@op()
def cumprod(
    data: TensorStructInfo,
    *,
    axis: int | None = None,
    dtype: str | None = None,
    exclusive: bool = False,
) -> StructInfo:
    """``out[i] = Π data[k], k ≤ i`` along `axis`, or over all elements; ``k < i`` if `exclusive`.

    Elements are converted to `dtype` first; of booleans, whether all hold.
    """
    return _scanned("cumprod", data, axis, dtype)


def _scanned(
    name: str, data: TensorStructInfo, axis: int | None, dtype: str | None
) -> TensorStructInfo:
    result = data.dtype if dtype is None else known_dtype(name, data, dtype)
    if axis is None:
        return tensor(None if data.dims is None else (dims.product(data.dims),), result, 1)
    if data.ndim >= 0:
        normalize_axis(name, data, axis)
    return tensor(data.dims, result, data.ndim)
