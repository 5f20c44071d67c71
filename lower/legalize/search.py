"""Searches: positions of extremes, places in sorted sequences."""

from collections.abc import Callable, Mapping

from relax_egraph.errors import NotLowerable
from relax_egraph.ir import dims
from relax_egraph.ir.dtypes import is_float
from relax_egraph.lower.legalize.elementwise import Legalize
from relax_egraph.lower.legalize.reduce import max_, min_, reduced_shape, without
from relax_egraph.tir import te
from relax_egraph.tir.expr import TirExpr, from_dim
from relax_egraph.tir.scalar import greatest
from relax_egraph.tir.tensor import Reduction


def argmax(x: te.Tensor, *, axis: int | None, keepdims: bool) -> te.Tensor:
    """The maximum, then the least index at which it, or NaN, is; there is an element."""
    return _position(max_, x, axis, keepdims, "argmax")


def argmin(x: te.Tensor, *, axis: int | None, keepdims: bool) -> te.Tensor:
    """The minimum, then the least index at which it, or NaN, is; there is an element."""
    return _position(min_, x, axis, keepdims, "argmin")


def _position(
    extreme: Callable[..., te.Tensor], x: te.Tensor, axis: int | None, keepdims: bool, name: str
) -> te.Tensor:
    rank = len(x.shape)
    places = tuple(range(rank)) if axis is None else (axis % rank,)
    best = extreme(x, axis=places, keepdims=False)
    axes = {p: te.reduce_axis(x.shape[p], f"k{k}") for k, p in enumerate(places)}
    count = dims.product(x.shape[p] for p in places)
    narrow = isinstance(count, int) and count <= greatest("int32")
    counted = "int32" if narrow else "int64"  # of which a vector holds twice as many
    none = te.const(greatest(counted), counted)
    shape = reduced_shape(x.shape, places, keepdims=keepdims)

    def value(*i: TirExpr) -> TirExpr | Reduction:
        at = without(i, places) if keepdims else i
        kept = iter(at)
        element = x[tuple(axes[p] if p in axes else next(kept) for p in range(rank))]
        index: TirExpr = te.const(0, "int64")
        for p in places:
            index = index * from_dim(x.shape[p]) + axes[p]
        index = te.cast(index, counted)
        if not axes:
            return index
        found = te.select(te.equal(element, best[at]), index, none)
        if is_float(element.dtype):
            found = te.select(te.not_equal(element, element), index, found)
        return te.min(found, [*axes.values()])

    found = te.compute(shape, value, name)
    return te.compute(shape, lambda *i: te.cast(found[i], "int64"), name) if narrow else found


def bucketize(
    input_tensor: te.Tensor, boundaries: te.Tensor, *, out_int32: bool, right: bool
) -> te.Tensor:
    """Counts the boundaries that are below, in time linear in how many there are."""
    if input_tensor.dtype == "bool":
        raise NotLowerable("R.bucketize of booleans: needs numbers")
    dtype = "int32" if out_int32 else "int64"
    k = te.reduce_axis(boundaries.shape[0])

    def below(*i: TirExpr) -> Reduction:
        x, boundary = input_tensor[i], boundaries[k]
        if right:
            counted = te.select(boundary <= x, 1, te.cast(te.not_equal(x, x), "int64"))
        else:
            counted = te.select(boundary >= x, 0, te.cast(te.equal(boundary, boundary), "int64"))
        return te.sum(te.cast(counted, dtype), k)

    return te.compute(input_tensor.shape, below, "bucketize")


LEGALIZE: Mapping[str, Legalize] = {"argmax": argmax, "argmin": argmin, "bucketize": bucketize}
