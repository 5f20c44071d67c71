"""Writes at index tensors and masks."""

from relax_egraph.frontends.building.builder import dtype_of, info_of, shape_of
from relax_egraph.frontends.torch.checks import checked_indices
from relax_egraph.frontends.torch.node import Node
from relax_egraph.frontends.torch.operators.indexing import places_of
from relax_egraph.frontends.torch.registry import converts
from relax_egraph.ir.expr import Expr, Tuple


@converts("aten.index_put.default", "aten._unsafe_index_put.default")
def index_put(node: Node) -> Expr:
    """``self[indices] = values``, or ``+=``; ``None`` among indices is a whole axis."""
    x, rank = node["self"], node.rank("self")
    indices = node.arguments["indices"]
    values = node.operand("values", node.out_dtype)
    if _is_fill(node):
        (mask,) = indices
        return node.emit("where", _behind(node, mask, rank), values, x)
    places = places_of(node)
    if not places.indices:
        return _everywhere(node, x, values)
    order = places.order(rank)
    is_turned = order != tuple(range(rank))
    front = node.emit("permute_dims", x, axes=order) if is_turned else x
    count = max(info_of(index).ndim for index in places.indices)
    values = _in_front(node, values, count, places.at, rank - len(places.axes))
    written = _written(node, front, Tuple(places.indices), values)
    if not is_turned:
        return written
    return node.emit("permute_dims", written, axes=tuple(order.index(k) for k in range(rank)))


def _is_fill(node: Node) -> bool:
    """Whether one value is written where a mask of leading axes is true."""
    indices = node.arguments["indices"]
    return (
        len(indices) == 1
        and indices[0] is not None
        and dtype_of(indices[0]) == "bool"
        and node.rank("values") == 0
        and not node.flag("accumulate")
    )


def _behind(node: Node, mask: Expr, rank: int) -> Expr:
    """`mask` with new axes behind it, up to `rank`."""
    own = info_of(mask).ndim
    more = tuple(range(own, rank))
    return node.emit("expand_dims", mask, axis=more) if more else mask


def _everywhere(node: Node, x: Expr, values: Expr) -> Expr:
    whole = node.stretched(values, node.out_shape)
    if not node.flag("accumulate"):
        return whole
    return node.emit("logical_or" if node.out_dtype == "bool" else "add", x, whole)


def _in_front(node: Node, values: Expr, count: int, at: int, rest: int) -> Expr:
    """`values`, which broadcast to what is selected, with the axes of the indices in front.

    They are `count` axes behind `at` others, and `rest` axes are not indexed.
    """
    rank = info_of(values).ndim
    if at == 0 or rank <= rest - at:
        return values
    missing = count + rest - rank
    if missing:
        values = node.emit("expand_dims", values, axis=tuple(range(missing)))
    order = (*range(at, at + count), *range(at), *range(at + count, count + rest))
    return node.emit("permute_dims", values, axes=order)


def _written(node: Node, x: Expr, indices: Tuple, values: Expr) -> Expr:
    """`x` with `values` written, or added, at `indices`; a sum of booleans is an or."""
    accumulate = node.flag("accumulate")
    if not accumulate or node.out_dtype != "bool":
        return node.emit("index_put", x, indices, values, accumulate=accumulate)
    whole, added = node.cast(x, "int64"), node.cast(values, "int64")
    return node.cast(node.emit("index_put", whole, indices, added, accumulate=True), "bool")


@converts("aten.masked_scatter.default")
def masked_scatter(node: Node) -> Expr:
    """The operand, where a mask is true with the next element of the source each."""
    shape = node.out_shape
    x, mask = (node.stretched(node[name], shape) for name in ("self", "mask"))
    source = node.emit("flatten", node["source"])
    (count,) = shape_of(source)
    if 0 in shape or count == 0:
        return x
    flags = node.emit("flatten", mask)
    ends = node.emit("cumsum", node.cast(flags, "int64"), axis=0)
    before = node.emit("subtract", ends, node.scalar(1, "int64"))
    used = node.emit("where", flags, before, node.scalar(0, "int64"))
    values = node.emit("take", source, checked_indices(node, used, count), axis=0)
    return node.emit("where", mask, node.reshaped(values, shape), x)
