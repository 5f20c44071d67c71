"""Reductions over axes; without `axis` over all of them."""

from relax_egraph.errors import IllTyped
from relax_egraph.ir.op import op
from relax_egraph.ir.ops.broadcast import floating
from relax_egraph.ir.ops.manipulate import normalize_axis
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo, tensor


def reduced(
    name: str, x: TensorStructInfo, axis: tuple[int, ...] | None, keepdims: bool
) -> TensorStructInfo:
    """The struct info of `x` reduced over `axis`."""
    if x.ndim < 0:
        return tensor(() if axis is None and not keepdims else None, x.dtype)
    places = {normalize_axis(name, x, a) for a in (range(x.ndim) if axis is None else axis)}
    if axis is not None and len(places) != len(axis):
        raise IllTyped(f"R.{name} of {x}: axes {list(axis)} repeat an axis")
    if x.dims is None:
        return tensor(None, x.dtype, x.ndim if keepdims else x.ndim - len(places))
    shape = [1 if k in places else d for k, d in enumerate(x.dims) if keepdims or k not in places]
    return tensor(tuple(shape), x.dtype)


@op(fusible=True)
def sum_(
    x: TensorStructInfo, *, axis: tuple[int, ...] | None = None, keepdims: bool = False
) -> StructInfo:
    """``out = Σ x`` over `axis`; 0 over nothing."""
    return reduced("sum", x, axis, keepdims)


@op(fusible=True)
def max_(
    x: TensorStructInfo, *, axis: tuple[int, ...] | None = None, keepdims: bool = False
) -> StructInfo:
    """``out = max x`` over `axis`; NaN if one is NaN; the dtype's least value over nothing."""
    return reduced("max", x, axis, keepdims)


@op(fusible=True)
def min_(
    x: TensorStructInfo, *, axis: tuple[int, ...] | None = None, keepdims: bool = False
) -> StructInfo:
    """``out = min x`` over `axis`; NaN if one is NaN; the dtype's greatest value over nothing."""
    return reduced("min", x, axis, keepdims)


@op(fusible=True)
def mean(
    x: TensorStructInfo, *, axis: tuple[int, ...] | None = None, keepdims: bool = False
) -> StructInfo:
    """``out = Σ x / count`` over `axis`, of floating-point tensors; NaN over nothing."""
    floating("mean", x)
    return reduced("mean", x, axis, keepdims)
