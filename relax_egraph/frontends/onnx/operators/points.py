"""Images read at points: grids, regions of interest, deformed windows; and the choice of boxes."""

import math

import numpy as np

from relax_egraph.errors import ModelError
from relax_egraph.frontends.onnx.node import Node, dtype_of
from relax_egraph.frontends.onnx.operators.resized import METHODS
from relax_egraph.frontends.onnx.operators.windows import Windows, windows_of
from relax_egraph.frontends.onnx.registry import converts
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Attr, Expr, PrimValue, ShapeExpr, Tuple, const
from relax_egraph.ir.ops.points import BEYOND, POOLED
from relax_egraph.ir.struct_info import tensor


@converts("GridSample")
def grid_sample(node: Node) -> Expr:
    """Images at the points of a grid."""
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
    """Bins of boxes, of the mean of points or the greatest of them."""
    mode = node.attrs.text("mode")
    if mode not in POOLED:
        raise ModelError(f"its mode is {mode!r}, needs one of {', '.join(POOLED)}")
    # boxes were in pixels of whole numbers before there was a choice
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
    """The boxes of each class that no better one overlaps."""
    names = ("max_output_boxes_per_class", "iou_threshold", "score_threshold")
    known: dict[str, Attr] = {"center_point_box": bool(node.attrs.integer("center_point_box"))}
    late: dict[str, Expr] = {}
    for place, name in enumerate(names, 2):
        if not node.has(place):
            continue
        constant = node.constant(place)
        if constant is None:
            late[name] = node.emit("reshape", node[place], ShapeExpr(()))
        elif constant.data.size != 1:
            raise ModelError(f"its {name} has {constant.data.size} elements, needs 1")
        else:
            known[name] = constant.data.item()
    if not late:
        return node.emit("image.non_max_suppression", node[0], node[1], **known)
    out = tensor(None, "int64", 2)
    return node.emit_late("image.non_max_suppression", node[0], node[1], out=out, **known, **late)


# --- deformed windows -------------------------------------------------------------------


@converts("DeformConv")
def deform_conv(node: Node) -> Expr:
    """A convolution whose taps are moved by offsets, each read between four pixels.

    The taps of all windows are a grid of points; what is read there is multiplied by the weights.
    """
    images, channels, *extents = node.shape(0)
    features, of_group, *kernel = node.shape(1)
    sizes = tuple(k for k in kernel if isinstance(k, int))
    if len(extents) != 2 or len(sizes) != 2:
        raise ModelError("it moves over other than two axes, or by a kernel of unknown extents")
    moves = windows_of(node, sizes)
    groups, parts = node.attrs.integer("group"), node.attrs.integer("offset_group")
    taps = math.prod(sizes)
    made = node.shape(2)[2:]
    count = dims.product(made)
    each = dims.floordiv(channels, parts)
    batch = dims.mul(images, parts)

    def shaped(x: Expr, *shape: Dim) -> Expr:
        return node.emit("reshape", x, ShapeExpr(shape))

    offsets = shaped(node[2], batch, taps, 2, count)
    grid = _normalized(node, offsets, moves, made, (extents[0], extents[1]))
    x = shaped(node[0], batch, each, *extents)
    read = node.emit("image.grid_sample", x, grid, align_corners=False)
    if node.has(4):
        read = node.emit("multiply", read, shaped(node[4], batch, 1, taps, count))
    columns = shaped(read, images, groups, dims.mul(of_group, taps), count)
    weights = shaped(node[1], groups, dims.floordiv(features, groups), dims.mul(of_group, taps))
    result = shaped(node.emit("matmul", weights, columns), images, features, *made)
    if not node.has(3):
        return result
    return node.emit("add", result, shaped(node[3], features, 1, 1))


def _normalized(
    node: Node,
    offsets: Expr,
    moves: Windows,
    made: tuple[Dim, ...],
    extents: tuple[Dim, Dim],
) -> Expr:
    """The points of all taps, (n, tap, window, 2), from -1 to 1 between the borders of an image.

    `offsets` in pixels are of shape (n, tap, 2, window).
    """
    emit, dtype = node.emit, dtype_of(offsets)
    kernel = np.indices(moves.sizes).reshape(2, -1) * np.array(moves.dilations)[:, None]
    points: list[Expr] = []
    for k, extent in enumerate(extents):
        steps = emit("arange", PrimValue(made[k]), dtype=dtype)
        starts = emit("multiply", steps, node.scalar(moves.strides[k], dtype))
        by_axis = emit("expand_dims", starts, axis=1 - k)
        spread = emit("broadcast_to", by_axis, ShapeExpr(made))
        windows = emit("reshape", spread, ShapeExpr((dims.product(made),)))
        taps = const((kernel[k] - moves.before[k])[:, None], dtype)
        moved = emit("take", offsets, const(k, "int64"), axis=2)
        pixels = emit("add", moved, emit("add", windows, taps))
        centers = emit("add", pixels, node.scalar(0.5, dtype))
        twice = emit("multiply", centers, node.scalar(2, dtype))
        length = node.cast(emit("shape_to_tensor", ShapeExpr((extent,))), dtype)
        points.append(emit("subtract", emit("divide", twice, length), node.scalar(1, dtype)))
    y, x = points
    return emit("stack", Tuple((x, y)), axis=-1)
