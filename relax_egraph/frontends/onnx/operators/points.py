"""Images sampled at points: grids, regions of interest, deformed windows; non-max suppression."""

import math

import numpy as np

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import dtype_of
from relax_egraph.frontends.building.resized import METHODS
from relax_egraph.frontends.building.windows import Windows
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.frontends.onnx.operators.windows import windows_of
from relax_egraph.frontends.onnx.registry import converts
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Attr, Expr, PrimValue, ShapeExpr, Tuple, const
from relax_egraph.ir.ops.points import BEYOND, POOLED
from relax_egraph.ir.struct_info import tensor


@converts("GridSample")
def grid_sample(node: Node) -> Expr:
    """Images sampled at the points of a grid."""
    mode, beyond = node.attrs.text("mode"), node.attrs.text("padding_mode")
    if mode not in _GRID_METHODS:
        raise ModelError(f"its mode is {mode!r}, needs one of {', '.join(_GRID_METHODS)}")
    if beyond not in BEYOND:
        raise ModelError(f"its padding_mode is {beyond!r}, needs one of {', '.join(BEYOND)}")
    return node.emit(
        "image.grid_sample",
        node[0],
        node[1],
        method=_GRID_METHODS[mode],
        padding_mode=beyond,
        align_corners=bool(node.attrs.integer("align_corners")),
    )


_GRID_METHODS = {**METHODS, "bicubic": "cubic"}


@converts("RoiAlign")
def roi_align(node: Node) -> Expr:
    """Bins of boxes, each with the mean or the maximum of its points."""
    mode = node.attrs.text("mode")
    if mode not in POOLED:
        raise ModelError(f"its mode is {mode!r}, needs one of {', '.join(POOLED)}")
    # before the attribute existed, boxes were in integral pixels
    aligned = node.attrs.schema_default("coordinate_transformation_mode") == "half_pixel"
    size = (node.attrs.integer("output_height"), node.attrs.integer("output_width"))
    return node.emit(
        "image.roi_align",
        node[0],
        node[1],
        node[2],
        pooled_size=size,
        spatial_scale=node.attrs.number("spatial_scale"),
        sampling_ratio=node.attrs.integer("sampling_ratio"),
        mode=mode,
        aligned=aligned,
    )


@converts("NonMaxSuppression")
def non_max_suppression(node: Node) -> Expr:
    """The boxes of each class that no better box overlaps."""
    names = ("max_output_boxes_per_class", "iou_threshold", "score_threshold")
    constants: dict[str, Attr] = {"center_point_box": bool(node.attrs.integer("center_point_box"))}
    late: dict[str, Expr] = {}
    for place, name in enumerate(names, 2):
        if not node.has(place):
            continue
        value = node.constant(place)
        if value is None:
            late[name] = node.emit("reshape", node[place], ShapeExpr(()))
        elif value.data.size != 1:
            raise ModelError(f"its {name} has {value.data.size} elements, needs 1")
        else:
            constants[name] = value.data.item()
    if not late:
        return node.emit("image.non_max_suppression", node[0], node[1], **constants)
    out = tensor(None, "int64", 2)
    return node.emit_late(
        "image.non_max_suppression", node[0], node[1], out=out, **constants, **late
    )


# --- deformed windows -------------------------------------------------------------------


@converts("DeformConv")
def deform_conv(node: Node) -> Expr:
    """A convolution whose taps are displaced by offsets, each sampled between four pixels.

    The taps of all windows are a grid of points; the samples are multiplied by the weights.
    """
    images, channels, *extents = node.shape(0)
    features, of_group, *kernel = node.shape(1)
    sizes = tuple(k for k in kernel if isinstance(k, int))
    if len(extents) != 2 or len(sizes) != 2:
        raise ModelError("needs two spatial axes and a kernel of known extents")
    moves = windows_of(node, sizes)
    groups, parts = node.attrs.integer("group"), node.attrs.integer("offset_group")
    taps = math.prod(sizes)
    positions = node.shape(2)[2:]
    count = dims.product(positions)
    each = dims.floordiv(channels, parts)
    batch = dims.mul(images, parts)

    def shaped(x: Expr, *shape: Dim) -> Expr:
        return node.emit("reshape", x, ShapeExpr(shape))

    offsets = shaped(node[2], batch, taps, 2, count)
    grid = _normalized_grid(node, offsets, moves, positions, (extents[0], extents[1]))
    x = shaped(node[0], batch, each, *extents)
    samples = node.emit("image.grid_sample", x, grid, align_corners=False)
    if node.has(4):
        samples = node.emit("multiply", samples, shaped(node[4], batch, 1, taps, count))
    columns = shaped(samples, images, groups, dims.mul(of_group, taps), count)
    weights = shaped(node[1], groups, dims.floordiv(features, groups), dims.mul(of_group, taps))
    result = shaped(node.emit("matmul", weights, columns), images, features, *positions)
    if not node.has(3):
        return result
    return node.emit("add", result, shaped(node[3], features, 1, 1))


def _normalized_grid(
    node: Node,
    offsets: Expr,
    moves: Windows,
    positions: tuple[Dim, ...],
    extents: tuple[Dim, Dim],
) -> Expr:
    """The points of all taps, (n, tap, window, 2), from -1 to 1 between the borders of an image.

    `offsets` are in pixels, with the shape (n, tap, 2, window).
    """
    emit, dtype = node.emit, dtype_of(offsets)
    kernel = np.indices(moves.sizes).reshape(2, -1) * np.array(moves.dilations)[:, None]
    points: list[Expr] = []
    for k, extent in enumerate(extents):
        steps = emit("arange", PrimValue(positions[k]), dtype=dtype)
        starts = emit("multiply", steps, node.scalar(moves.strides[k], dtype))
        by_axis = emit("expand_dims", starts, axis=1 - k)
        spread = emit("broadcast_to", by_axis, ShapeExpr(positions))
        windows = emit("reshape", spread, ShapeExpr((dims.product(positions),)))
        taps = const((kernel[k] - moves.before[k])[:, None], dtype)
        moved = emit("take", offsets, const(k, "int64"), axis=2)
        pixels = emit("add", moved, emit("add", windows, taps))
        centers = emit("add", pixels, node.scalar(0.5, dtype))
        twice = emit("multiply", centers, node.scalar(2, dtype))
        length = node.cast(emit("shape_to_tensor", ShapeExpr((extent,))), dtype)
        points.append(emit("subtract", emit("divide", twice, length), node.scalar(1, dtype)))
    y, x = points
    return emit("stack", Tuple((x, y)), axis=-1)
