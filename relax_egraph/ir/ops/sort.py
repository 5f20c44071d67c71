"""Sorting along an axis: stable, so that of equal elements the first comes first, either way.

NaN comes last, ascending and descending.
"""

from relax_egraph.errors import IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.op import op
from relax_egraph.ir.ops.dtypes import index_dtype
from relax_egraph.ir.ops.manipulate import normalize_axis
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo, TupleStructInfo, tensor


@op()
def sort(x: TensorStructInfo, *, axis: int = -1, descending: bool = False) -> StructInfo:
    """``out`` has the elements of `x` in order along `axis`, NaN last."""
    if x.ndim >= 0:
        normalize_axis("sort", x, axis)
    return tensor(x.dims, x.dtype, x.ndim)


@op()
def argsort(
    data: TensorStructInfo, *, axis: int = -1, descending: bool = False, dtype: str = "int32"
) -> StructInfo:
    """``out`` has the indices along `axis` of the elements in stable order, NaN last."""
    if data.ndim >= 0:
        normalize_axis("argsort", data, axis)
    return tensor(data.dims, index_dtype("argsort", data, dtype), data.ndim)


@op()
def topk(
    data: TensorStructInfo,
    *,
    k: int = 1,
    axis: int = -1,
    ret_type: str = "both",
    largest: bool = True,
    dtype: str = "int32",
) -> StructInfo:
    """``out`` is the first `k` along `axis` in descending, or ascending, stable order, NaN last.

    Both values and indices, or one of them; all there are if `k` is less than 1 or more than that.
    """
    index_dtype("topk", data, dtype)
    if ret_type not in ("both", "values", "indices"):
        raise IllTyped(
            f'R.topk of {data}: ret_type is "{ret_type}", needs "both", "values" or "indices"'
        )
    place = normalize_axis("topk", data, axis) if data.ndim >= 0 else 0
    shape = data.dims
    if shape is not None and k >= 1:
        shape = (*shape[:place], dims.minimum(shape[place], k), *shape[place + 1 :])
    values, indices = tensor(shape, data.dtype, data.ndim), tensor(shape, dtype, data.ndim)
    if ret_type == "both":
        return TupleStructInfo((values, indices))
    return values if ret_type == "values" else indices
