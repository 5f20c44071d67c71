"""Pools over windows, and over windows that cover an axis."""

import math

import numpy as np
import numpy.typing as npt

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import dtype_of
from relax_egraph.frontends.building.heads import shape_of
from relax_egraph.frontends.building.pools import (
    max_with_indices,
    pad_widths,
    pool_attributes,
    row_major,
)
from relax_egraph.frontends.building.windows import SPATIAL, Windows
from relax_egraph.frontends.torch.node import Node
from relax_egraph.frontends.torch.registry import converts
from relax_egraph.frontends.torch.windows import like_self, windows_of, with_batch
from relax_egraph.ir import dims
from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.expr import Expr, const
from relax_egraph.ir.struct_info import Shape


@converts("aten.max_pool1d.default")
def max_pool(node: Node) -> Expr:
    """The maximum of each window."""
    moves = windows_of(node, 1)
    return like_self(node, _maximum(node, with_batch(node, node["self"], 1), moves), 1)


@converts("aten.max_pool2d_with_indices.default", "aten.max_pool3d_with_indices.default")
def max_pool_with_indices(node: Node) -> tuple[Expr, Expr]:
    """The maximum of each window, and its index in the image, row by row."""
    rank = 2 if "pool2d" in node.op else 3
    moves = windows_of(node, rank)
    x = with_batch(node, node["self"], rank)
    shape = shape_of(x)
    places = row_major(node, (1, 1, *shape[2:]))
    _, indices = max_with_indices(node, x, moves, places, ceil=node.flag("ceil_mode"))
    batches = _maximum(node, x, moves), indices
    values, indices = (like_self(node, batch, rank) for batch in batches)
    return values, indices


def _maximum(node: Node, x: Expr, moves: Windows) -> Expr:
    attributes = pool_attributes(moves, ceil=node.flag("ceil_mode"))
    return node.emit(f"nn.max_pool{moves.rank}d", x, **attributes)


@converts("aten.avg_pool1d.default", "aten.avg_pool2d.default", "aten.avg_pool3d.default")
def avg_pool(node: Node) -> Expr:
    """The mean of each window, or its sum by a given divisor; of integers, truncated."""
    rank = int(node.op[len("aten.avg_pool")])
    moves = windows_of(node, rank)
    x, dtype = with_batch(node, node["self"], rank), node.out_dtype
    wide = node.cast(x, dtype if is_float(dtype) else "float64")
    divisor = node.integer("divisor_override") if node.has("divisor_override") else None
    if divisor is None:
        attributes = pool_attributes(moves, ceil=node.flag("ceil_mode"))
        counts = node.flag("count_include_pad")
        mean = node.emit(f"nn.avg_pool{rank}d", wide, **attributes, count_include_pad=counts)
    else:
        mean = _sum_by(node, wide, moves, divisor)
    if not is_float(dtype):
        mean = node.emit("trunc", mean)
    return like_self(node, node.cast(mean, dtype), rank)


def _sum_by(node: Node, x: Expr, moves: Windows, divisor: int) -> Expr:
    """The sum of each window divided by `divisor`: a scaled mean of the padded image."""
    widths = pad_widths(shape_of(x), moves, ceil=node.flag("ceil_mode"))
    padded = node.emit("nn.pad", x, pad_width=widths)
    none = (0,) * moves.rank
    plain = Windows(moves.sizes, moves.strides, moves.dilations, none, none)
    attributes = pool_attributes(plain, ceil=False)
    mean = node.emit(f"nn.avg_pool{moves.rank}d", padded, **attributes)
    factor = math.prod(moves.sizes) / divisor
    return node.emit("multiply", mean, node.scalar(factor, dtype_of(x)))


# --- windows that cover an axis ---------------------------------------------------------


@converts(
    "aten.adaptive_avg_pool1d.default",
    "aten._adaptive_avg_pool2d.default",
    "aten._adaptive_avg_pool3d.default",
)
def adaptive_avg_pool(node: Node) -> Expr:
    """The means of windows that cover each axis."""
    rank = len(node.sizes("output_size"))
    sizes = _output_sizes(node, rank)
    x = with_batch(node, node["self"], rank)
    layout = f"NC{SPATIAL[rank]}"
    mean = node.emit(f"nn.adaptive_avg_pool{rank}d", x, output_size=sizes, layout=layout)
    return like_self(node, mean, rank)


@converts(
    "aten.adaptive_max_pool1d.default",
    "aten.adaptive_max_pool2d.default",
    "aten.adaptive_max_pool3d.default",
)
def adaptive_max_pool(node: Node) -> tuple[Expr, Expr]:
    """The maxima of windows that cover each axis, and their indices in the image.

    Windows of different extents are gathered into windows of the greatest extent, which repeat
    their last elements; the first maximum is the result.
    """
    rank = len(node.sizes("output_size"))
    sizes = _output_sizes(node, rank)
    x = with_batch(node, node["self"], rank)
    images, channels, *extents = shape_of(x)
    if set(sizes) == {1}:
        return _whole_maximum(node, (images, channels, dims.product(tuple(extents))), x)
    places = row_major(node, (1, 1, *extents))
    reaches: list[int] = []
    for axis, (extent, size) in enumerate(zip(extents, sizes, strict=True), 2):
        if not isinstance(extent, int):
            raise ModelError(
                f"it has {dims.text(extent)} elements for {size} windows along an axis"
            )
        taps = _taps(extent, size)
        reaches.append(taps.shape[1])
        if taps.size != extent:
            flat = const(taps.reshape(-1))
            x, places = (node.emit("take", e, flat, axis=axis) for e in (x, places))
    none = (0,) * rank
    moves = Windows(tuple(reaches), tuple(reaches), (1,) * rank, none, none)
    values, indices = max_with_indices(node, x, moves, places, ceil=False)
    return like_self(node, values, rank), like_self(node, indices, rank)


def _whole_maximum(node: Node, shape: Shape, x: Expr) -> tuple[Expr, Expr]:
    flat = node.reshaped(x, shape)
    values = node.emit("max", flat, axis=2)
    indices = node.emit("argmax", flat, axis=2)
    return node.reshaped(values, node.out_shape), node.reshaped(indices, node.out_shape)


def _taps(extent: int, count: int) -> npt.NDArray[np.int64]:
    """The elements of each of `count` windows that cover an axis, (window, tap)."""
    windows = np.arange(count)
    starts, ends = windows * extent // count, -(-(windows + 1) * extent // count)
    reach = int((ends - starts).max(initial=1))
    return np.minimum(starts[:, None] + np.arange(reach), ends[:, None] - 1)


def _output_sizes(node: Node, rank: int) -> tuple[int, ...]:
    sizes = node.out_shape[-rank:]
    known = tuple(size for size in sizes if isinstance(size, int))
    if len(known) < rank:
        raise ModelError("its output_size is known only at run time")
    return known
