"""Instances of searches."""

from collections.abc import Mapping

import numpy as np

from tests.support.ops.case import ANY, NUMBERS, Case, Draw, Sampler
from tests.support.ops.sort import tied


def position(draw: Draw) -> Case:
    """Extremes along an axis that has an element, or of all elements; some elements are NaN."""
    shape = list(draw.shape())
    axis = draw.axis(len(shape)) if shape and draw.chance(0.8) else None
    for a in range(len(shape)) if axis is None else (axis,):
        shape[a] = max(shape[a], 1)
    attrs = {"axis": axis, "keepdims": draw.chance()}
    return Case((tied(draw, shape, draw.choice(ANY)),), attrs)


def bucketize(draw: Draw) -> Case:
    """Ascending boundaries, perhaps none; NaN among either."""
    dtype = draw.choice(NUMBERS)
    x, boundaries = (tied(draw, draw.shape(least, most), dtype) for least, most in ((0, 3), (1, 1)))
    attrs = {"out_int32": draw.chance(), "right": draw.chance()}
    return Case((x, np.sort(boundaries)), attrs)


SAMPLERS: Mapping[str, Sampler] = {
    **dict.fromkeys(["argmax", "argmin"], position),
    "bucketize": bucketize,
}
