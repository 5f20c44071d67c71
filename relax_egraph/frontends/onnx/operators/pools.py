"""Pooling over windows and over whole images."""

import itertools
import math

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import dtype_of
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.frontends.onnx.operators.windows import SPATIAL, Windows, windows_of
from relax_egraph.frontends.onnx.registry import converts
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.expr import Attr, Expr, PrimValue, ShapeExpr, Tuple
from relax_egraph.ir.ops.pooling import pool as pool_of
from relax_egraph.ir.struct_info import tensor


@converts("MaxPool")
def max_pool(node: Node) -> tuple[Expr, ...]:
    """The maximum of each window, and optionally its index in the operand."""
    moves = windows_of(node, node.attrs.integers("kernel_shape"))
    if len(node.outputs) < 2 or not node.outputs[1]:
        return (node.emit(f"nn.max_pool{moves.rank}d", node[0], **_settings(node, moves)),)
    return _with_indices(node, moves)


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
    after = [a + b for a, b in zip(moves.after, _overhang(node, moves), strict=True)]
    widths = [0, 0, 0, 0]
    for before, behind in zip(moves.before, after, strict=True):
        widths += [before, behind]
    powers = node.emit("power", x, node.scalar(p, dtype))
    padded = node.emit("nn.pad", powers, pad_width=tuple(widths))
    none = (0,) * moves.rank
    plain = Windows(moves.sizes, moves.strides, moves.dilations, none, none)
    mean = node.emit(f"nn.avg_pool{moves.rank}d", padded, **_attributes(plain, ceil=False))
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
    return _attributes(moves, ceil=bool(node.attrs.schema_default("ceil_mode")))


def _attributes(moves: Windows, *, ceil: bool) -> dict[str, Attr]:
    return {
        "pool_size": moves.sizes,
        "strides": moves.strides,
        "padding": moves.padding,
        "dilation": moves.dilations,
        "ceil_mode": ceil,
        "layout": f"NC{SPATIAL[moves.rank]}",
    }


def _positions(node: Node, moves: Windows) -> tuple[Dim, ...]:
    """The number of windows along each axis."""
    settings = pool_of(
        node.op,
        moves.rank,
        pool_size=moves.sizes,
        strides=moves.strides,
        padding=moves.padding,
        dilation=moves.dilations,
        ceil_mode=bool(node.attrs.schema_default("ceil_mode")),
        count_include_pad=False,
        layout=f"NC{SPATIAL[moves.rank]}",
        out_layout=None,
    )
    return settings.shape(node.shape(0))[2:]


def _overhang(node: Node, moves: Windows) -> list[int]:
    """The excess of the last window of each axis over the padded operand."""
    result: list[int] = []
    each = zip(node.shape(0)[2:], _positions(node, moves), range(moves.rank), strict=True)
    for extent, count, k in each:
        end = dims.add(dims.mul(dims.sub(count, 1), moves.strides[k]), moves.reach[k])
        room = dims.add(extent, moves.before[k] + moves.after[k])
        over = dims.maximum(dims.sub(end, room), 0)
        if not isinstance(over, int):
            if node.attrs.schema_default("ceil_mode"):
                raise ModelError("where its last window ends is known only at run time")
            over = 0
        result.append(over)
    return result


def _with_indices(node: Node, moves: Windows) -> tuple[Expr, ...]:
    """The maximum of each window and its index, computed over the taps of the window.

    The first of equal elements is selected.  Indices count all elements of the operand in row-major
    order, or, with `storage_order`, with the first spatial axis fastest.
    """
    shape, counts = node.shape(0), _positions(node, moves)
    dtype = node.dtype(0)
    axes = tuple(range(2, 2 + moves.rank))
    widths = [0, 0, 0, 0]
    for before, after, over in zip(moves.before, moves.after, _overhang(node, moves), strict=True):
        widths += [before, after + over]
    least = float("-inf") if is_float(dtype) else 0.0 if dtype.startswith("u") else -128.0
    data = node.emit("nn.pad", node[0], pad_width=tuple(widths), pad_value=least)
    places = node.emit("nn.pad", _places(node, shape), pad_width=tuple(widths))
    best: list[Expr] = []
    for tap in itertools.product(*map(range, moves.sizes)):
        begin = tuple(t * d for t, d in zip(tap, moves.dilations, strict=True))
        end = tuple(
            dims.add(b, dims.add(dims.mul(dims.sub(c, 1), s), 1))
            for b, c, s in zip(begin, counts, moves.strides, strict=True)
        )
        value, place = (
            node.emit(
                "strided_slice",
                e,
                ShapeExpr(begin),
                ShapeExpr(end),
                axes=axes,
                strides=moves.strides,
            )
            for e in (data, places)
        )
        if not best:
            best = [value, place]
            continue
        is_greater = node.emit("greater", value, best[0])
        best = [
            node.emit("where", is_greater, new, old)
            for new, old in zip((value, place), best, strict=True)
        ]
    return tuple(best)


def _places(node: Node, shape: tuple[Dim, ...]) -> Expr:
    """The index of each element, in a tensor of `shape`."""
    count = dims.product(shape)
    along = node.emit("arange", PrimValue(count), dtype="int64")
    if not node.attrs.schema_default("storage_order"):
        return node.emit("reshape", along, ShapeExpr(shape))
    spatial = tuple(reversed(shape[2:]))
    by_column = node.emit("reshape", along, ShapeExpr((*shape[:2], *spatial)))
    order = (0, 1, *reversed(range(2, len(shape))))
    return node.emit("permute_dims", by_column, axes=order)
