"""Gathers by index tensors, and slices.

Indices from tensors are cast to ``int64``; negative ones count from the end of the axis, and all
are clamped into it, so that no data causes reads outside a buffer.
"""

from collections.abc import Collection, Mapping, Sequence

from relax_egraph.errors import NotLowerable
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.ops.slices import slice_inbound, slice_of
from relax_egraph.ir.struct_info import Shape
from relax_egraph.lower.legalize.elementwise import Legalize, broadcast, element
from relax_egraph.tir import te
from relax_egraph.tir.expr import Operand, TirExpr, TirVar, as_expr, from_dim
from relax_egraph.tir.tensor import Reduction


def clamped(position: Operand, extent: Dim) -> TirExpr:
    """`position`, clamped into an axis of `extent`; 0 if the axis is empty."""
    return te.maximum(te.minimum(position, from_dim(dims.sub(extent, 1))), 0)


def position(index: TirExpr, extent: Dim) -> TirExpr:
    """The position of `index`, which may be negative, clamped into an axis of `extent`."""
    wide = te.cast(index, "int64")
    return clamped(te.select(wide < 0, wide + from_dim(extent), wide), extent)


def read(x: te.Tensor, at: Sequence[TirExpr], clamped_axes: Collection[int]) -> TirExpr:
    """The element of `x` at `at`, or 0 if one of the axes `clamped_axes` is empty.

    All of `at` are inside their axes, unless these are empty.
    """
    maybe_empty = [x.shape[k] for k in clamped_axes if not dims.prove_ge(x.shape[k], 1)]
    if 0 in maybe_empty:
        return te.const(0, x.dtype)
    if not maybe_empty:
        return x[tuple(at)]
    nonempty = from_dim(maybe_empty[0]) > 0
    for extent in maybe_empty[1:]:
        nonempty = te.logical_and(nonempty, from_dim(extent) > 0)
    return te.if_then_else(nonempty, x[tuple(at)], te.const(0, x.dtype))


def take(x: te.Tensor, indices: te.Tensor, *, axis: int | None, mode: str) -> te.Tensor:
    """The slices of `x` along `axis` at `indices`."""
    place = 0 if axis is None else axis % len(x.shape)
    extent, count = x.shape[place], len(indices.shape)
    shape = (*x.shape[:place], *indices.shape, *x.shape[place + 1 :])

    def value(*i: TirVar) -> TirExpr:
        wide = te.cast(indices[i[place : place + count]], "int64")
        match mode:
            case "clip":
                at = clamped(wide, extent)
            case "wrap":
                at = wide % te.maximum(from_dim(extent), 1)
            case _:
                at = position(wide, extent)
        result = read(x, (*i[:place], at, *i[place + count :]), (place,))
        if mode != "nan":
            return result
        outside = te.logical_or(wide < 0, wide >= from_dim(extent))
        return te.select(outside, te.const(float("nan"), x.dtype), result)

    return te.compute(shape, value, "take")


def are_inside(
    indices: te.Tensor, shape: Shape, *, axes: tuple[int, ...], from_end: bool
) -> te.Tensor:
    """Whether each of `indices` is valid for its axis of `shape`, for `check_indices`."""
    over = [te.reduce_axis(d, f"r{k}") for k, d in enumerate(indices.shape)]

    def inside(*_: TirVar) -> Reduction:
        wide = te.cast(indices[tuple(over)], "int64")
        extent = from_dim(shape[axes[-1]])
        for k in reversed(range(len(axes) - 1)):
            extent = te.select(te.equal(over[-1], k), from_dim(shape[axes[k]]), extent)
        lowest = 0 - extent if from_end else 0
        fits = te.logical_and(wide >= lowest, wide < extent)
        return te.min(te.cast(fits, "int32"), over)

    least = te.compute((), inside, "least")
    return te.compute((), lambda: least[()] > 0, "inside")


def gather_elements(data: te.Tensor, indices: te.Tensor, *, axis: int) -> te.Tensor:
    """The element of `data` at each place, with its index along `axis` replaced by `indices`."""
    place = axis % len(data.shape)
    require_room(data, indices, place)

    def value(*i: TirVar) -> TirExpr:
        at = position(indices[i], data.shape[place])
        return read(data, (*i[:place], at, *i[place + 1 :]), (place,))

    return te.compute(indices.shape, value, "gather_elements")


def require_room(data: te.Tensor, indices: te.Tensor, place: int) -> None:
    """Raise `NotLowerable` unless `indices` fit into `data` along all axes but `place`."""
    for k, (extent, count) in enumerate(zip(data.shape, indices.shape, strict=True)):
        if k != place and not dims.prove_ge(extent, count):
            raise NotLowerable("whether the indices fit the tensor is known only at run time")


def gather_nd(data: te.Tensor, indices: te.Tensor, *, batch_dims: int) -> te.Tensor:
    """The part of `data` at the index in each row of `indices`."""
    for a, b in zip(data.shape[:batch_dims], indices.shape[:batch_dims], strict=True):
        if not dims.equal(a, b):
            raise NotLowerable("whether the batch axes agree is known only at run time")
    end = batch_dims + depth_of(indices)
    where = len(indices.shape) - 1

    def value(*i: TirVar) -> TirExpr:
        point, rest = i[:where], i[where:]
        at = row(indices, point, data.shape[batch_dims:])
        return read(data, (*point[:batch_dims], *at, *rest), range(batch_dims, end))

    return te.compute((*indices.shape[:-1], *data.shape[end:]), value, "gather_nd")


def depth_of(indices: te.Tensor) -> int:
    """The number of positions in the last axis of `indices`."""
    depth = indices.shape[-1]
    if not isinstance(depth, int):
        raise NotLowerable("how many axes are indexed is known only at run time")
    return depth


def row(indices: te.Tensor, point: Sequence[TirExpr], shape: Shape) -> list[TirExpr]:
    """The positions along axes of extents `shape` in the row of `indices` at `point`."""
    return [position(indices[(*point, k)], shape[k]) for k in range(depth_of(indices))]


def index_tensor(data: te.Tensor, indices: Sequence[te.Tensor]) -> te.Tensor:
    """The part of `data` at the broadcast `indices` into its leading axes."""
    where = broadcast(*(t.shape for t in indices))
    count = len(indices)

    def value(*i: TirVar) -> TirExpr:
        at = leading(data, indices, where, i[: len(where)])
        return read(data, (*at, *i[len(where) :]), range(count))

    return te.compute((*where, *data.shape[count:]), value, "index_tensor")


def leading(
    data: te.Tensor, indices: Sequence[te.Tensor], where: Shape, point: tuple[TirVar, ...]
) -> list[TirExpr]:
    """The positions along the leading axes of `data` at `point` of `where`."""
    return [
        position(element(t, where, point), extent)
        for t, extent in zip(indices, data.shape, strict=False)
    ]


def strided_slice(
    x: te.Tensor,
    begin: Shape,
    end: Shape,
    *,
    axes: tuple[int, ...],
    strides: tuple[int, ...] | None,
    assume_inbound: bool,
) -> te.Tensor:
    """A slice of `x`; positions that the caller promises to be inside are clamped nevertheless."""
    shape = list(x.shape)
    places = [a % len(shape) for a in axes]
    steps = strides or (1,) * len(axes)
    starts: dict[int, tuple[Dim, int]] = {}
    loose: list[int] = []
    for place, first, last, step in zip(places, begin, end, steps, strict=True):
        cut = slice_inbound if assume_inbound else slice_of
        slice_ = cut(x.shape[place], first, last, step)
        if slice_ is None:
            raise NotLowerable("whether positions count from the end is known only at run time")
        start, shape[place] = slice_
        starts[place] = start, step
        if assume_inbound and not _is_within(x.shape[place], slice_, step):
            loose.append(place)

    def value(*i: TirVar) -> TirExpr:
        at: list[TirExpr] = []
        for k, axis in enumerate(i):
            start, step = starts.get(k, (0, 1))
            index = as_expr(axis * step) + from_dim(start)
            at.append(clamped(index, x.shape[k]) if k in loose else index)
        return read(x, at, loose)

    return te.compute(shape, value, "strided_slice")


def _is_within(extent: Dim, slice_: tuple[Dim, Dim], step: int) -> bool:
    first, count = slice_
    last = dims.add(first, dims.mul(step, dims.sub(count, 1)))
    least, most = (first, last) if step > 0 else (last, first)
    return dims.prove_ge(least, 0) and dims.prove_ge(dims.sub(extent, 1), most)


LEGALIZE: Mapping[str, Legalize] = {
    "take": take,
    "gather_elements": gather_elements,
    "gather_nd": gather_nd,
    "index_tensor": index_tensor,
    "strided_slice": strided_slice,
}
