"""Reads and writes at places that index tensors give, which gather and scatter share."""

from collections.abc import Sequence
from dataclasses import dataclass

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import dtype_of
from relax_egraph.frontends.stablehlo.node import Node, like, shape_of
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.dtypes import is_signed
from relax_egraph.ir.expr import Expr, PrimValue, Tuple


@dataclass(frozen=True, slots=True)
class Window:
    """How a vector of indices addresses a window of a tensor.

    The windows have the extents `sizes`; the axes `removed` of the tensor, of extent 1 in a window,
    are not among the `window_axes` of the slices or updates.  The indices are of the axes
    `start_axes`; the axes `batching` go over the axes `batched` of the indices.
    """

    sizes: tuple[Dim, ...]
    window_axes: tuple[int, ...]
    removed: tuple[int, ...]
    start_axes: tuple[int, ...]
    batching: tuple[int, ...]
    batched: tuple[int, ...]
    vector_axis: int

    @property
    def kept(self) -> list[int]:
        """The axes of the tensor that the window axes are."""
        return [k for k in range(len(self.sizes)) if k not in (*self.removed, *self.batching)]


@dataclass(frozen=True, slots=True)
class Places:
    """Where the windows of a tensor lie.

    `axes` of the tensor are indexed by `indices`, which broadcast to ``(batch…, partial…)``:
    `partial` are the indexed axes along which a window has an extent, `full` those that are whole
    in it.  `starts` are the first places along the `start_axes`, of shape ``(batch…)``.
    """

    axes: tuple[int, ...]
    indices: tuple[Expr, ...]
    batch: tuple[Dim, ...]
    partial: tuple[int, ...]
    full: tuple[int, ...]
    starts: tuple[tuple[int, Expr], ...]


def places(
    node: Node, shape: Sequence[Dim], indices: Expr, window: Window, *, clamp: bool
) -> Places:
    """The places of the windows in a tensor of `shape`, clamped to fit into it or not."""
    if not is_signed(dtype_of(indices)):
        indices = node.cast(indices, "int64")
    at = window.vector_axis
    vectors = shape_of(indices)
    if at == len(vectors):
        indices, vectors = node.reshaped(indices, (*vectors, 1)), (*vectors, 1)
    batch = (*vectors[:at], *vectors[at + 1 :])
    full = tuple(k for k in window.kept if _is_whole(k, shape, window, clamp=clamp))
    partial = tuple(k for k in window.kept if k not in full)
    starts: list[tuple[int, Expr]] = []
    for number, axis in enumerate(window.start_axes):
        if axis in full:
            continue
        each = _component(node, indices, at, number, batch)
        if clamp:
            each = clamped(node, each, shape[axis], window.sizes[axis])
        starts.append((axis, each))
    dtype = dtype_of(indices)
    by_axis: dict[int, Expr] = {}
    for axis, start in starts:
        by_axis[axis] = node.reshaped(start, (*batch, *(1 for _ in partial)))
    for number, axis in enumerate(partial):
        spread: list[Dim] = [1] * (len(batch) + len(partial))
        spread[len(batch) + number] = window.sizes[axis]
        along = node.reshaped(node.iota(window.sizes[axis], dtype), spread)
        by_axis[axis] = node.emit("add", by_axis[axis], along) if axis in by_axis else along
    for axis, over in zip(window.batching, window.batched, strict=True):
        spread = [1] * (len(batch) + len(partial))
        place = over - (over > at)
        spread[place] = batch[place]
        by_axis[axis] = node.reshaped(node.iota(batch[place], dtype), spread)
    for axis in window.removed:
        if axis not in by_axis:
            raise ModelError(f"the axis {axis} is removed, and no index is of it")
    axes = tuple(sorted(by_axis))
    return Places(axes, tuple(by_axis[k] for k in axes), batch, partial, full, tuple(starts))


def _is_whole(axis: int, shape: Sequence[Dim], window: Window, *, clamp: bool) -> bool:
    """Whether windows are as long as the tensor along `axis`: if clamped, they begin at 0."""
    whole = dims.equal(window.sizes[axis], shape[axis])
    return whole and (clamp or axis not in window.start_axes)


def _component(node: Node, indices: Expr, at: int, number: int, batch: Sequence[Dim]) -> Expr:
    """Element `number` of each vector of indices, whose axis is `at`."""
    begin, end = [0] * (len(batch) + 1), list(shape_of(indices))
    begin[at], end[at] = number, number + 1
    return node.reshaped(node.sliced(indices, begin, end), batch)


def clamped(node: Node, start: Expr, extent: Dim, size: Dim) -> Expr:
    """`start`, so that a window of `size` is within an axis of `extent`."""
    last = dims.sub(extent, size)
    if not is_signed(dtype_of(start)):
        start = node.cast(start, "int64")
    least = node.emit("maximum", start, like(0, start))
    return node.emit("minimum", least, limit(node, last, least))


def limit(node: Node, size: Dim, value: Expr) -> Expr:
    """The number `size` in the dtype of `value`."""
    if isinstance(size, int):
        return like(size, value)
    return node.emit("prim_to_tensor", PrimValue(size), dtype=dtype_of(value))


def put(node: Node, value: Expr, indices: Sequence[Expr], update: Expr) -> Expr:
    """`value` with `update` at `indices` into its first axes."""
    return node.emit("index_put", value, Tuple(tuple(indices)), update)
