"""Tensors joined, and repeated."""

from relax_egraph.frontends.building.builder import info_of
from relax_egraph.frontends.building.positions import counted
from relax_egraph.frontends.building.repetition import tiled
from relax_egraph.frontends.torch.checks import bind_size, require
from relax_egraph.frontends.torch.node import Node, normalized
from relax_egraph.frontends.torch.registry import converts
from relax_egraph.ir.expr import Expr, ShapeExpr, Tuple


@converts("aten.cat.default")
def cat(node: Node) -> Expr:
    """Tensors one behind the other along an axis; those of shape ``(0,)`` add nothing."""
    parts = [x for x in node.all("tensors") if info_of(x).dims != (0,) or len(node.out_shape) == 1]
    whole = [node.cast(x, node.out_dtype) for x in parts]
    if not whole:
        return node.emit("zeros", ShapeExpr(node.out_shape), dtype=node.out_dtype)
    if len(whole) == 1:
        return whole[0]
    return node.emit("concat", Tuple(tuple(whole)), axis=node.axis("dim", len(node.out_shape)))


@converts("aten.repeat.default")
def repeat(node: Node) -> Expr:
    """The operand so many times along each axis; there may be new leading axes."""
    times, shape = node.sizes("repeats"), node.shape("self")
    more = len(times) - len(shape)
    x = node["self"]
    if more:
        x = node.emit("expand_dims", x, axis=tuple(range(more)))
    return tiled(node, x, times)


@converts("aten.repeat_interleave.Tensor")
def repeat_interleave(node: Node) -> Expr:
    """Each index of `repeats` as many times as its element is."""
    (count,), (total,) = node.shape("repeats"), node.out_shape
    if count == 0:
        return node.emit("zeros", ShapeExpr((0,)), dtype=node.out_dtype)
    times = node.operand("repeats", "int64")
    is_nonnegative = node.emit("greater_equal", times, node.scalar(0, "int64"))
    require(node, node.emit("prod", is_nonnegative), "repeats can not be negative")
    ends = node.emit("cumsum", times, axis=0)
    last = node.emit("take", ends, node.scalar(-1, "int64"), axis=0)
    bind_size(node, last, total)
    place = counted(node, total)
    found = node.emit("bucketize", place, ends, right=True)
    return node.cast(found, node.out_dtype)


@converts("aten.unfold.default")
def unfold(node: Node) -> Expr:
    """Windows along an axis: the place of a window in place of the axis, its elements last."""
    shape, size = node.shape("self"), node.integer("size")
    if not shape:
        return node.reshaped(node["self"], node.out_shape)
    axis = normalized(node.integer("dimension"), len(shape))
    count, step = node.out_shape[axis], node.scalar(node.integer("step"), "int64")
    starts = node.emit("multiply", counted(node, count, 0, 2), step)
    places = node.emit("add", starts, counted(node, size, 1, 2))
    windows = node.emit("take", node["self"], places, axis=axis)
    order = [k for k in range(len(shape) + 1) if k != axis + 1]
    return node.emit("permute_dims", windows, axes=(*order, axis + 1))
