"""Instances of operators on images."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from relax_egraph.ir.ops.image import PAD_MODES
from relax_egraph.ir.ops.resizing import CROP, MODES, ROUNDINGS, TAPS
from relax_egraph.ir.ops.window import SPATIAL
from tests.support.ops.case import ANY, FLOATS, NUMBERS, Case, Draw, Sampler
from tests.support.ops.conv import ERROR, layout, shape


def pad(draw: Draw) -> Case:
    x = draw.array(draw.shape(), draw.choice(ANY))
    widths = tuple(draw.choice([0, 0, 1, 2, 4]) for _ in range(2 * x.ndim))
    attrs: dict[str, Any] = {"pad_width": widths, "pad_mode": draw.choice(PAD_MODES)}
    return Case((x,), attrs | {"pad_value": float(draw.integer(0, 5))})


def pixel_shuffle(draw: Draw) -> Case:
    factor = draw.integer(1, 3)
    batch = draw.shape(0, 2)
    channels = factor**2 * draw.integer(0, 2)
    x = draw.array((*batch, channels, draw.extent(), draw.extent()), draw.choice(ANY))
    return Case((x,), {"upscale_factor": factor})


def resize(rank: int, draw: Draw) -> Case:
    letters = SPATIAL[rank]
    method = draw.choice([*TAPS])
    mode = draw.choice(MODES)
    dtypes = {"nearest_neighbor": ANY, "linear": NUMBERS, "cubic": FLOATS}[method]
    dtype = draw.choice(dtypes)
    others = FLOATS if method == "cubic" else ("float64", "int32")
    attrs: dict[str, Any] = {
        "layout": layout(draw, f"NC{letters}"),
        "method": method,
        "coordinate_transformation_mode": mode,
        "rounding_method": draw.choice(ROUNDINGS),
        "cubic_alpha": draw.choice([-0.75, -0.5]),
        "cubic_exclude": draw.integer(0, 1),
        "extrapolation_value": draw.choice([0.0, 7.0]),
        "out_dtype": draw.choice([None, None, "", "void", draw.choice(others)]),
    }
    if mode == CROP or draw.chance(0.2):
        # eighths, so that points on the border and in the middle are exact
        starts = [draw.integer(-1, 3) / 8 for _ in letters]
        ends = [draw.integer(4, 9) / 8 for _ in letters]
        attrs["roi"] = (*starts, *ends)
    extents = {letter: draw.choice([1, 2, 3, 4, 5, 7]) for letter in letters}
    extents |= {"N": draw.choice([0, 1, 2]), "C": draw.choice([0, 1, 2])}
    if draw.chance(0.1):
        extents[letters[0]] = 0
    size = tuple(draw.choice([0, 1, 2, 3, 4, 5, 6, 8][: 12 - 2 * rank]) for _ in letters)
    return Case((draw.array(shape(attrs["layout"], extents), dtype), size), attrs, ERROR)


def affine_grid(draw: Draw) -> Case:
    size = tuple(draw.choice([0, 1, 2, 3, 5]) for _ in range(draw.integer(2, 3)))
    matrix = draw.array((draw.extent(), len(size), len(size) + 1), draw.choice(FLOATS))
    return Case((matrix, size), {"align_corners": draw.chance()})


SAMPLERS: Mapping[str, Sampler] = {
    "nn.pad": pad,
    "nn.pixel_shuffle": pixel_shuffle,
    "image.affine_grid": affine_grid,
    "image.resize2d": partial(resize, 2),
    "image.resize3d": partial(resize, 3),
}
