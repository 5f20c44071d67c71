"""Instances of operators that sample images at points, and of box selection."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from relax_egraph.ir.ops.points import BEYOND, POOLED
from relax_egraph.ir.ops.resizing import TAPS
from tests.support.ops.case import FLOATS, INTEGERS, Array, Case, Draw, Sampler
from tests.support.ops.conv import ERROR


def grid_sample(draw: Draw) -> Case:
    rank = draw.integer(2, 3)
    extents = tuple(draw.choice([0, 1, 2, 3, 4, 7]) for _ in range(rank))
    positions = tuple(draw.choice([0, 1, 2, 3]) for _ in range(rank))
    batch, dtype = draw.choice([0, 1, 2]), draw.choice(FLOATS)
    data = draw.array((batch, draw.choice([0, 1, 2]), *extents), dtype)
    attrs: dict[str, Any] = {
        "method": draw.choice([*TAPS]),
        "padding_mode": draw.choice(BEYOND),
        "align_corners": draw.chance(),
    }
    # sixteenths, so that the nearest pixel is exact
    points = draw.array((batch, *positions, rank), "int32", -24, 24) / np.float64(16)
    return Case((data, points.astype(dtype)), attrs, ERROR)


def roi_align(draw: Draw) -> Case:
    dtype, count = draw.choice(FLOATS), draw.choice([0, 1, 3])
    extents = (draw.choice([0, 1, 2]), draw.choice([0, 1, 2]), draw.extent(), draw.extent())
    data = draw.array(extents, dtype)
    corners = draw.array((count, 4), "int32", -8, 40) / np.float64(8)
    indices = draw.array((count,), draw.choice(INTEGERS), -1, 3)
    attrs: dict[str, Any] = {
        "pooled_size": (draw.integer(1, 3), draw.integer(1, 3)),
        "spatial_scale": draw.choice([1.0, 0.5]),
        "sampling_ratio": draw.integer(0, 2),
        "mode": draw.choice(POOLED),
        "aligned": draw.chance(),
    }
    return Case((data, corners.astype(dtype), indices), attrs, ERROR)


def boxes_of(draw: Draw, images: int, count: int, dtype: str) -> Array:
    """Boxes with corners on a grid of quarters."""
    return (draw.array((images, count, 4), "int32", 0, 16) / np.float64(4)).astype(dtype)


def non_max_suppression(draw: Draw) -> Case:
    images, classes, count = draw.choice([0, 1, 2]), draw.integer(0, 2), draw.extent()
    dtype = draw.choice(("float32", "float64"))
    scores = draw.array((images, classes, count), "int32", 0, 6) / np.float64(8)
    attrs: dict[str, Any] = {
        "max_output_boxes_per_class": draw.integer(-1, 4),
        "iou_threshold": draw.choice([0.0, 0.25, 0.5]),
        "score_threshold": draw.choice([None, 0.0, 0.25]),
        "center_point_box": draw.chance(),
    }
    return Case((boxes_of(draw, images, count, dtype), scores.astype(dtype)), attrs)


SAMPLERS: Mapping[str, Sampler] = {
    "image.grid_sample": grid_sample,
    "image.roi_align": roi_align,
    "image.non_max_suppression": non_max_suppression,
}
