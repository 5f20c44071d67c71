"""Pooling over windows and over whole images."""

import math

from relax_egraph.frontends.building.builder import dtype_of
from relax_egraph.frontends.building.pools import (
    max_with_indices,
    pad_widths,
    pool_attributes,
    row_major,
)
from relax_egraph.frontends.building.windows import Windows
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.frontends.onnx.operators.windows import windows_of
from relax_egraph.frontends.onnx.registry import converts
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Attr, Expr, ShapeExpr, Tuple
from relax_egraph.ir.struct_info import tensor


@converts("MaxPool")
def max_pool(node: Node) -> tuple[Expr, ...]:
    """The maximum of each window, and optionally its index in the operand."""
    moves = windows_of(node, node.attrs.integers("kernel_shape"))
    if len(node.outputs) < 2 or not node.outputs[1]:
        return (node.emit(f"nn.max_pool{moves.rank}d", node[0], **_settings(node, moves)),)
    places = _places(node, node.shape(0))
    return max_with_indices(node, node[0], moves, places, ceil=_ceil(node))


@converts("AveragePool")
def average_pool(node: Node) -> Expr:
    """The mean of each window."""
    moves = windows_of(node, node.attrs.integers("kernel_shape"))
    count_padding = bool(node.attrs.schema_default("count_include_pad"))
    settings = _settings(node, moves) | {"count_include_pad": count_padding}
    return node.emit(f"nn.avg_pool{moves.rank}d", node[0], **settings)


@converts("LpPool")
def lp_pool(node: Node) -> Expr:
    """``(Σ |x|^p)^(1/p)`` of each window: the mean of the zero-padded powers, times its size."""
    moves = windows_of(node, node.attrs.integers("kernel_shape"))
    x, p = node.emit("abs", node[0]), node.attrs.integer("p")
    dtype = dtype_of(x)
    widths = pad_widths(node.shape(0), moves, ceil=_ceil(node))
    powers = node.emit("power", x, node.scalar(p, dtype))
    padded = node.emit("nn.pad", powers, pad_width=widths)
    none = (0,) * moves.rank
    plain = Windows(moves.sizes, moves.strides, moves.dilations, none, none)
    mean = node.emit(f"nn.avg_pool{moves.rank}d", padded, **pool_attributes(plain, ceil=False))
    total = node.emit("multiply", mean, node.scalar(math.prod(moves.sizes), dtype))
    return node.emit("power", total, node.scalar(1 / p, dtype))


@converts("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(node: Node) -> Expr:
    """A single window over all spatial axes."""
    axes = tuple(range(2, node.rank(0)))
    if node.op == "GlobalAveragePool":
        return node.emit("mean", node[0], axis=axes, keepdims=True)
    if node.op == "GlobalMaxPool":
        return node.emit("max", node[0], axis=axes, keepdims=True)
    p, dtype = node.attrs.integer("p"), node.dtype(0)
    powers = node.emit("power", node.emit("abs", node[0]), node.scalar(p, dtype))
    total = node.emit("sum", powers, axis=axes, keepdims=True)
    return node.emit("power", total, node.scalar(1 / p, dtype))


@converts("MaxUnpool")
def max_unpool(node: Node) -> Expr:
    """Elements at the indices of a pool, and zeros elsewhere.

    Indices refer to the shape that was pooled; `output_shape` may extend it.
    """
    moves = windows_of(node, node.attrs.integers("kernel_shape"))
    shape = node.shape(0)
    pooled: list[Dim] = list(shape[:2])
    each = zip(shape[2:], moves.strides, moves.sizes, moves.before, moves.after, strict=True)
    for extent, stride, size, before, after in each:
        spread = dims.mul(dims.sub(extent, 1), stride)
        pooled.append(dims.sub(dims.add(spread, size), before + after))
    whole = tuple(pooled)
    empty = node.emit("zeros", ShapeExpr(whole), dtype=node.dtype(0))
    flat = [node.emit("flatten", e) for e in (empty, node[1], node[0])]
    scattered = node.emit("scatter_elements", *flat, axis=0)
    unpooled = node.emit("reshape", scattered, ShapeExpr(whole))
    return _enlarged(node, unpooled, whole) if node.has(2) else unpooled


def _enlarged(node: Node, unpooled: Expr, whole: tuple[Dim, ...]) -> Expr:
    """`unpooled`, of shape `whole`, extended with zeros to the extents in operand 2."""
    extents = node.integers(2)
    if extents is not None and extents == whole:
        return unpooled
    own = node.emit("shape_to_tensor", ShapeExpr(whole))
    more = node.emit("subtract", node[2], own)
    pairs = node.emit("stack", Tuple((node.emit("zeros_like", more), more)), axis=1)
    widths = node.emit("reshape", pairs, ShapeExpr((2 * len(whole),)))
    out = tensor(None, node.dtype(0), len(whole))
    return node.emit_late("nn.pad", unpooled, pad_width=widths, out=out)


def _settings(node: Node, moves: Windows) -> dict[str, Attr]:
    return pool_attributes(moves, ceil=_ceil(node))


def _ceil(node: Node) -> bool:
    return bool(node.attrs.schema_default("ceil_mode"))


def _places(node: Node, shape: tuple[Dim, ...]) -> Expr:
    """The index of each element, in a tensor of `shape`.

    With `storage_order` the first spatial axis is the fastest.
    """
    if not node.attrs.schema_default("storage_order"):
        return row_major(node, shape)
    by_column = row_major(node, (*shape[:2], *reversed(shape[2:])))
    order = (0, 1, *reversed(range(2, len(shape))))
    return node.emit("permute_dims", by_column, axes=order)
