"""Searches: positions of extremes, and positions in sorted sequences."""

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
    """The least index of the maximum, or of NaN; there is at least one element."""
    return _position(max_, x, axis, keepdims, "argmax")


def argmin(x: te.Tensor, *, axis: int | None, keepdims: bool) -> te.Tensor:
    """The least index of the minimum, or of NaN; there is at least one element."""
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
    index_dtype = "int32" if narrow else "int64"  # a vector holds twice as many int32
    none = te.const(greatest(index_dtype), index_dtype)
    shape = reduced_shape(x.shape, places, keepdims=keepdims)

    def value(*i: TirExpr) -> TirExpr | Reduction:
        at = without(i, places) if keepdims else i
        kept = iter(at)
        element = x[tuple(axes[p] if p in axes else next(kept) for p in range(rank))]
        index: TirExpr = te.const(0, "int64")
        for p in places:
            index = index * from_dim(x.shape[p]) + axes[p]
        index = te.cast(index, index_dtype)
        if not axes:
            return index
        position = te.select(te.equal(element, best[at]), index, none)
        if is_float(element.dtype):
            position = te.select(te.not_equal(element, element), index, position)
        return te.min(position, [*axes.values()])

    positions = te.compute(shape, value, name)
    return (
        te.compute(shape, lambda *i: te.cast(positions[i], "int64"), name) if narrow else positions
    )


def bucketize(
    input_tensor: te.Tensor, boundaries: te.Tensor, *, out_int32: bool, right: bool
) -> te.Tensor:
    """The number of boundaries below each element, in time linear in the number of boundaries."""
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
