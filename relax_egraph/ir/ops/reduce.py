"""Reductions over axes; without `axis` over all of them."""

from relax_egraph.errors import IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.message import no_element
from relax_egraph.ir.op import op
from relax_egraph.ir.ops.broadcast import floating
from relax_egraph.ir.ops.manipulate import normalize_axis
from relax_egraph.ir.requirements import exceeds, misfits
from relax_egraph.ir.struct_info import (
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    shape_text,
    tensor,
)


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


def chosen_of(name: str, x: TensorStructInfo, axis: tuple[int, ...] | None) -> None:
    """Raise `IllTyped` if `axis` is proven to have no element to choose."""
    if x.dims is None:
        return
    places = range(x.ndim) if axis is None else axis
    if exceeds(1, dims.product(x.dims[normalize_axis(name, x, a)] for a in places)):
        raise IllTyped(f"R.{name} of {x}: {no_element(axis)}")


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


@op()
def prod(
    x: TensorStructInfo, *, axis: tuple[int, ...] | None = None, keepdims: bool = False
) -> StructInfo:
    """``out = Π x`` over `axis`; 1 over nothing; of booleans, whether all hold."""
    return reduced("prod", x, axis, keepdims)


@op()
def variance(
    x: TensorStructInfo, *, axis: tuple[int, ...] | None = None, keepdims: bool = False
) -> StructInfo:
    """``out = Σ (x - mean x)² / count`` over `axis`, of floating-point tensors, 0 / 0 is NaN."""
    floating("variance", x)
    return reduced("variance", x, axis, keepdims)


@op()
def std(
    x: TensorStructInfo, *, axis: tuple[int, ...] | None = None, keepdims: bool = False
) -> StructInfo:
    """``out = √(Σ (x - mean x)² / count)`` over `axis`, of floating-point tensors."""
    floating("std", x)
    return reduced("std", x, axis, keepdims)


@op()
def median(
    data: TensorStructInfo, *, axis: tuple[int, ...] | None = None, keepdims: bool = False
) -> StructInfo:
    """``out`` is element ``(count - 1) // 2`` over `axis` in stable ascending order, NaN last.

    Over exactly one axis the result is a tuple: the elements, and their ``int64`` indices.
    """
    chosen_of("median", data, axis)
    values = reduced("median", data, axis, keepdims)
    if axis is None or len(axis) != 1:
        return values
    return TupleStructInfo((values, tensor(values.dims, "int64", values.ndim)))


@op()
def collapse_sum_like(data: TensorStructInfo, collapse_target: TensorStructInfo) -> StructInfo:
    """``out`` has the shape of `collapse_target`: `data` summed over what broadcasting repeated."""
    return _collapsed("collapse_sum_like", data, collapse_target)


@op()
def collapse_sum_to(data: TensorStructInfo, shape: ShapeStructInfo) -> StructInfo:
    """``out`` has the given shape: `data` summed over the axes along which that broadcasts."""
    return _collapsed("collapse_sum_to", data, tensor(shape.values, None, shape.ndim))


def _collapsed(name: str, data: TensorStructInfo, to: TensorStructInfo) -> TensorStructInfo:
    have, want = data.dims, to.dims
    fits = data.ndim < 0 or to.ndim <= data.ndim
    if fits and have is not None and want is not None:
        pairs = zip(reversed(have), reversed(want), strict=False)
        fits = not any(misfits(w, h) for h, w in pairs)
    if not fits:
        target = f"rank {to.ndim}" if want is None else shape_text(want)
        raise IllTyped(f"R.{name} of {data} to {target}: needs a shape that broadcasts to it")
    return tensor(want, data.dtype, to.ndim)
