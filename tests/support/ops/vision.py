"""Instances of operators on regions of images, and of the choice of boxes."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from relax_egraph.ir.ops.points import POOLED
from relax_egraph.ir.ops.suppression import FORMATS
from relax_egraph.ir.ops.vision import IMAGES
from tests.support.ops.case import FLOATS, Array, Case, Draw, Sampler
from tests.support.ops.conv import ERROR
from tests.support.ops.points import boxes_of

WIDE = ("float32", "float64")


def regions(draw: Draw) -> tuple[tuple[Array, Array], dict[str, Any]]:
    dtype, count, layout = draw.choice(FLOATS), draw.choice([0, 1, 3]), draw.choice(IMAGES)
    extents = (draw.integer(1, 2), draw.integer(1, 3), draw.integer(1, 5), draw.integer(1, 5))
    corners = draw.array((count, 5), "int32", -8, 40) / np.float64(8)
    corners[:, 0] = draw.array((count,), "int32", 0, extents[0] - 1)
    attrs: dict[str, Any] = {
        "pooled_size": draw.choice([(2,), (draw.integer(1, 3), draw.integer(1, 3))]),
        "spatial_scale": draw.choice([1.0, 0.5]),
        "layout": layout,
    }
    return (draw.array(extents, dtype), corners.astype(dtype)), attrs


def roi_align(draw: Draw) -> Case:
    operands, attrs = regions(draw)
    ratio = draw.choice([1, 2]) if attrs["spatial_scale"] == 1.0 else draw.integer(-1, 2)
    more = {"sample_ratio": ratio, "aligned": draw.chance(), "mode": draw.choice(POOLED)}
    return Case(operands, attrs | more, ERROR)


def roi_pool(draw: Draw) -> Case:
    operands, attrs = regions(draw)
    return Case(operands, attrs)


def multibox_transform_loc(draw: Draw) -> Case:
    images, classes, boxes = draw.integer(0, 2), draw.integer(1, 3), draw.extent()
    dtype = draw.choice(FLOATS)
    operands = (
        draw.array((images, classes, boxes), dtype),
        draw.array((images, 4 * boxes), dtype, -1, 1),
        draw.array((1, boxes, 4), dtype, 0, 1),
    )
    attrs: dict[str, Any] = {
        "clip": draw.chance(),
        "threshold": 0.0,
        "variances": draw.choice([(1.0, 1.0, 1.0, 1.0), (0.1, 0.1, 0.2, 0.2)]),
        "keep_background": draw.chance(),
    }
    return Case(operands, attrs, 2e-5)


def rows(draw: Draw) -> Array:
    """Rows of a class, a score and the corners of a box."""
    images, boxes, dtype = draw.integer(0, 2), draw.extent(), draw.choice(WIDE)
    of_class = draw.array((images, boxes, 1), "int32", -1, 1)
    scores = draw.array((images, boxes, 1), "int32", -1, 8) / np.float64(8)
    corners = boxes_of(draw, images, boxes, dtype)
    return np.concatenate([of_class, scores, corners], 2).astype(dtype)


def get_valid_counts(draw: Draw) -> Case:
    attrs = {"score_threshold": draw.choice([0.0, 0.25]), "id_index": draw.choice([-1, 0])}
    return Case((rows(draw),), attrs)


def non_max_suppression(draw: Draw) -> Case:
    data = rows(draw)
    images, boxes, _ = data.shape
    counts = draw.array((images,), "int32", 0, boxes)
    attrs: dict[str, Any] = {
        "max_output_size": draw.integer(-1, 4),
        "iou_threshold": draw.choice([0.25, 0.5]),
        "force_suppress": draw.chance(),
        "top_k": draw.integer(-1, 4),
        "id_index": draw.choice([-1, 0]),
        "return_indices": draw.chance(),
        "invalid_to_bottom": draw.chance(),
        "soft_nms_sigma": draw.choice([0.0, 0.0, 0.5]),
    }
    numbers = np.broadcast_to(np.arange(boxes, dtype=np.int32), (images, boxes))
    return Case((data, counts, np.ascontiguousarray(numbers)), attrs, ERROR)


def all_class_non_max_suppression(draw: Draw) -> Case:
    images, classes, count = draw.integer(0, 2), draw.integer(0, 2), draw.extent()
    dtype = draw.choice(WIDE)
    scores = draw.array((images, classes, count), "int32", 0, 6) / np.float64(8)
    shape = draw.choice([(), (1,)])
    numbers = (
        np.full(shape, draw.integer(0, 4), "int64"),
        np.full(shape, draw.choice([0.0, 0.25, 0.5]), dtype),
        np.full(shape, draw.choice([0.0, 0.25]), dtype),
    )
    boxes = boxes_of(draw, images, count, dtype)
    attrs = {"output_format": draw.choice(FORMATS)}
    return Case((boxes, scores.astype(dtype), *numbers), attrs)


SAMPLERS: Mapping[str, Sampler] = {
    "vision.roi_align": roi_align,
    "vision.roi_pool": roi_pool,
    "vision.multibox_transform_loc": multibox_transform_loc,
    "vision.get_valid_counts": get_valid_counts,
    "vision.non_max_suppression": non_max_suppression,
    "vision.all_class_non_max_suppression": all_class_non_max_suppression,
}
