"""Bags of rows of a table."""

import math

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import dtype_of, info_of
from relax_egraph.frontends.building.positions import counted
from relax_egraph.frontends.torch.node import Node
from relax_egraph.frontends.torch.registry import converts
from relax_egraph.ir import dims
from relax_egraph.ir.expr import Expr, ShapeExpr

_SUM, _MEAN, _MAX = 0, 1, 2


@converts("aten._embedding_bag.default", "aten._embedding_bag_forward_only.default")
def embedding_bag(node: Node) -> tuple[Expr | None, ...]:
    """The sum, mean or maximum of the rows of each bag, 0 of an empty one; and what training keeps.

    A bag has the indices from its offset to that of the next one.  Kept are the bag of each index,
    and the number of indices of each bag; which rows had the maxima is not supported.
    """
    emit, dtype = node.emit, node.dtype("weight")
    indices, offsets, mode = node["indices"], node["offsets"], node.integer("mode")
    bags, features = node.out_shape
    (count,) = node.shape("indices")
    index = dtype_of(offsets)
    if node.flag("include_last_offset"):
        offsets = emit("strided_slice", offsets, ShapeExpr((0,)), ShapeExpr((bags,)), axes=(0,))
    begun = emit(
        "less_equal", emit("expand_dims", offsets, axis=1), counted(node, count, 1, 2, index)
    )
    bag = emit("subtract", emit("sum", node.cast(begun, "int64"), axis=0), node.scalar(1, "int64"))
    padding = node.integer("padding_idx")
    counts = emit("not_equal", indices, node.scalar(padding, node.dtype("indices")))
    kept = emit("expand_dims", counts, axis=1)
    rows = emit("take", node["weight"], indices, axis=0)
    if node.has("per_sample_weights"):
        scale = emit("expand_dims", node["per_sample_weights"], axis=1)
        rows = emit("multiply", rows, scale)
    zero = node.scalar(0, dtype)
    sizes = _summed(node, bag, node.cast(counts, dtype), ShapeExpr((bags,)), "add", zero)
    sizes = emit("expand_dims", sizes, axis=1)
    shape = ShapeExpr((bags, features))
    if mode == _MAX:
        least = node.scalar(float("-inf"), dtype)
        rows = emit("where", kept, rows, least)
        greatest = _summed(node, bag, rows, shape, "max", least)
        out = emit("where", emit("equal", sizes, zero), zero, greatest)
    else:
        out = _summed(node, bag, emit("where", kept, rows, zero), shape, "add", zero)
        if mode == _MEAN:
            out = emit("divide", out, emit("maximum", sizes, node.scalar(1, dtype)))
    kept = (
        bag,
        node.emit("squeeze", sizes, axis=1),
        node.emit("zeros", ShapeExpr((0,)), dtype=index),
    )
    return out, *(_as_kept(node, k, x) for k, x in enumerate(kept, 1))


def _as_kept(node: Node, place: int, value: Expr) -> Expr | None:
    """`value` as the result `place`, if it has the shape that torch has there."""
    wanted = node.results[place]
    if wanted is None or wanted.dtype is None or wanted.dims != info_of(value).dims:
        return None
    return node.cast(value, wanted.dtype)


@converts("aten._embedding_bag_backward.default", "aten._embedding_bag_dense_backward.default")
def embedding_bag_gradient(node: Node) -> Expr:
    """The gradient of each bag, added at its rows of the table."""
    emit, dtype, mode = node.emit, node.out_dtype, node.integer("mode")
    if mode == _MAX or node.flag("scale_grad_by_freq"):
        raise ModelError("its gradient is of maxima, or scaled by frequency")
    indices, bag = node["indices"], node["offset2bag"]
    rows = emit("take", node["grad"], bag, axis=0)
    if node.has("per_sample_weights"):
        rows = emit("multiply", rows, emit("expand_dims", node["per_sample_weights"], axis=1))
    if mode == _MEAN:
        sizes = emit("maximum", node.cast(node["bag_size"], dtype), node.scalar(1, dtype))
        count = emit("expand_dims", emit("take", sizes, bag, axis=0), axis=1)
        rows = emit("divide", rows, count)
    padding = node.scalar(node.integer("padding_idx"), node.dtype("indices"))
    kept = emit("expand_dims", emit("not_equal", indices, padding), axis=1)
    zero = node.scalar(0, dtype)
    rows = emit("where", kept, rows, zero)
    return _summed(node, indices, rows, ShapeExpr(node.out_shape), "add", zero)


@converts("aten.embedding_renorm.default")
def embedding_renorm(node: Node) -> Expr:
    """The table, whose rows at `indices` are scaled to the norm `max_norm` if they exceed it.

    torch divides by the norm and 1e-7 more.
    """
    emit, (rows, _), dtype = node.emit, node.out_shape, node.out_dtype
    table, most = node["self"], node.scalar(float(node.number("max_norm")), dtype)
    size, kind = emit("abs", table), float(node.number("norm_type"))
    if math.isinf(kind):
        norm = emit("max", size, axis=(1,), keepdims=True)
    else:
        powers = emit("power", size, node.scalar(kind, dtype))
        norm = emit(
            "power", emit("sum", powers, axis=(1,), keepdims=True), node.scalar(1 / kind, dtype)
        )
    places = node.reshaped(node["indices"], (dims.product(node.shape("indices")),))
    shape = ShapeExpr((rows,))
    ones = emit("ones_like", places, dtype=dtype)
    zero = node.scalar(0, dtype)
    met = _summed(node, places, ones, shape, "max", zero)
    is_met = emit("expand_dims", emit("greater", met, zero), axis=1)
    too_long = emit("logical_and", is_met, emit("greater", norm, most))
    factor = emit("divide", most, emit("add", norm, node.scalar(1e-7, dtype)))
    return emit("multiply", table, emit("where", too_long, factor, node.scalar(1, dtype)))


def _summed(
    node: Node, places: Expr, rows: Expr, shape: ShapeExpr, reduction: str, start: Expr
) -> Expr:
    """`rows` combined at `places` of a tensor of `shape` that is `start`."""
    blank = node.emit("full", shape, start, dtype=dtype_of(rows))
    by_row = node.emit("expand_dims", places, axis=1)
    return node.emit("scatter_nd", blank, by_row, rows, reduction=reduction)
