"""Reads at index tensors and masks."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from relax_egraph.frontends.building.builder import dtype_of, info_of, shape_of
from relax_egraph.frontends.torch.checks import checked_indices, with_shape
from relax_egraph.frontends.torch.node import Node
from relax_egraph.frontends.torch.registry import converts
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Expr, ShapeExpr, Tuple


@converts("aten.index_select.default")
def index_select(node: Node) -> Expr:
    """Slices at indices along an axis."""
    if node.rank("self") == 0:
        return _at_each(node, node.reshaped(node["self"], (1,)), node["index"])
    axis = node.axis("dim", node.rank("self"))
    index = node.reshaped(node["index"], (node.out_shape[axis],))
    at = checked_indices(node, index, node.shape("self")[axis], from_end=False)
    return node.emit("take", node["self"], at, axis=axis)


def _at_each(node: Node, x: Expr, index: Expr) -> Expr:
    at = checked_indices(node, node.reshaped(index, node.out_shape), 1, from_end=False)
    return node.emit("take", x, at, axis=0)


@converts("aten.embedding.default")
def embedding(node: Node) -> Expr:
    """Rows of a table."""
    at = checked_indices(node, node["indices"], node.shape("weight")[0], from_end=False)
    return node.emit("take", node["weight"], at, axis=0)


@converts("aten.gather.default")
def gather(node: Node) -> Expr:
    """Elements at indices along an axis."""
    if 0 in node.out_shape:
        return node.emit("zeros", ShapeExpr(node.out_shape), dtype=node.out_dtype)
    axis = node.axis("dim", node.rank("self"))
    x, index = node.ranked("self"), node.ranked("index")
    shape = shape_of(x)
    at = checked_indices(node, index, shape[axis], from_end=False)
    return node.reshaped(node.emit("gather_elements", x, at, axis=axis), node.out_shape)


@converts("aten.nonzero.default")
def nonzero(node: Node) -> Expr:
    """The indices of the elements that are not 0, a row for each."""
    count = node.out_shape[0]
    rows = node.emit("nonzero", node["self"])
    shape = (node.rank("self"), count)
    return node.emit("permute_dims", with_shape(node, rows, shape), axes=(1, 0))


@converts("aten.nonzero_static.default")
def nonzero_static(node: Node) -> Expr:
    """As many of the indices of the elements that are not 0, and `fill_value` behind them."""
    size, rank = node.out_shape
    rows = node.emit("nonzero", node["self"])
    rows = with_shape(node, rows, (rank, node.symbols.new("count")))
    found = node.emit("permute_dims", rows, axes=(1, 0))
    fill = node.operand("fill_value", "int64")
    rest = node.emit("full", ShapeExpr((size, rank)), fill)
    all_rows = node.emit("concat", Tuple((found, rest)), axis=0)
    return node.emit("strided_slice", all_rows, ShapeExpr((0,)), ShapeExpr((size,)), axes=(0,))


@converts("aten.masked_select.default")
def masked_select(node: Node) -> Expr:
    """The elements where a mask is true, in row-major order."""
    shape = node.broadcast_shape("self", "mask")
    x, mask = (node.emit("flatten", node.stretched(node[n], shape)) for n in ("self", "mask"))
    places = with_shape(node, node.emit("nonzero", mask), (1, node.out_shape[0]))
    return node.emit("take", x, node.emit("squeeze", places, axis=(0,)), axis=0)


@dataclass(frozen=True, slots=True)
class Places:
    """Indices into some axes of a tensor: `indices` broadcast, `axes` are those that they index.

    The axis of the result that they make, or the first of several, is `at`.
    """

    axes: tuple[int, ...]
    indices: tuple[Expr, ...]
    at: int

    def order(self, rank: int) -> tuple[int, ...]:
        """The axes of a tensor of `rank`, those that are indexed first."""
        return (*self.axes, *(k for k in range(rank) if k not in self.axes))


@converts("aten.index.Tensor", "aten._unsafe_index.Tensor")
def index(node: Node) -> Expr:
    """``self[indices]``: elements at index tensors and masks; ``None`` is a whole axis."""
    x, rank = node["self"], node.rank("self")
    places = places_of(node, node.out_shape)
    if not places.indices:
        return x
    if len(places.axes) == 1:
        return node.emit("take", x, places.indices[0], axis=places.axes[0])
    order = places.order(rank)
    if order != tuple(range(rank)):
        x = node.emit("permute_dims", x, axes=order)
    found = node.emit("index_tensor", x, Tuple(places.indices))
    count = len(node.out_shape) - (rank - len(places.axes))
    return moved(node, found, count, places.at)


def moved(node: Node, x: Expr, count: int, at: int) -> Expr:
    """`x` with its first `count` axes behind the `at` axes that follow them."""
    if at == 0 or count == 0:
        return x
    rank = info_of(x).ndim
    order = (*range(count, count + at), *range(count), *range(count + at, rank))
    return node.emit("permute_dims", x, axes=order)


def places_of(node: Node, out: Sequence[Dim] | None = None) -> Places:
    """The argument `indices`, checked to be inside of the tensor `self`; masks become indices.

    `out` is the shape of what they select, if torch says it: it has the number of true elements.
    """
    shape = node.shape("self")
    tensors: Sequence[Expr | None] = node.arguments["indices"]
    widths = [_width(index) for index in tensors]
    ends = list(accumulate(widths, initial=0))
    places = [k for k, index in enumerate(tensors) if index is not None and widths[k]]
    at = ends[places[0]] if places and places[-1] - places[0] == len(places) - 1 else 0
    is_flat = all(index is None or _is_mask(index) or info_of(index).ndim <= 1 for index in tensors)
    count = out[at] if out is not None and is_flat and len(out) > at else None
    axes, found = list[int](), list[Expr]()
    for k in places:
        index = tensors[k]
        assert index is not None
        axes.extend(range(ends[k], ends[k + 1]))
        if _is_mask(index):
            found.extend(_of_mask(node, index, count))
        else:
            found.append(checked_indices(node, index, shape[ends[k]]))
    return Places(tuple(axes), tuple(found), at)


def _width(index: Expr | None) -> int:
    """The number of axes that `index` is for."""
    return info_of(index).ndim if index is not None and _is_mask(index) else 1


def _is_mask(index: Expr) -> bool:
    return dtype_of(index) in ("bool", "uint8")


def _of_mask(node: Node, mask: Expr, count: Dim | None) -> Sequence[Expr]:
    """The indices along each axis of the elements where `mask` is true, perhaps `count`."""
    rank = info_of(mask).ndim
    every = (rank, node.symbols.new("count") if count is None else count)
    rows = with_shape(node, node.emit("nonzero", mask), every)
    if rank == 1:
        return [node.emit("squeeze", rows, axis=(0,))]
    return [node.emit("take", rows, node.scalar(k, "int64"), axis=0) for k in range(rank)]
