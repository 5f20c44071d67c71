"""Instances of the operator that takes elements for those of another dtype."""

import math
from collections.abc import Mapping

import numpy as np

from tests.support.ops.case import ANY, Case, Draw, Sampler


def reinterpret(draw: Draw) -> Case:
    data = draw.array(draw.shape(), draw.choice(INTEGRAL))
    shape, dtype = draw.shape(), draw.choice([None, *INTEGRAL])
    size = math.prod(shape) * np.dtype(dtype or data.dtype).itemsize
    if size > data.nbytes:
        shape, size = (0,), 0
    offset = (draw.integer(0, data.nbytes - size),)
    return Case((data, shape, *(offset if draw.chance() else ())), {"dtype": dtype})


INTEGRAL = tuple(dtype for dtype in ANY if "float" not in dtype)
"""Dtypes all of whose bits are a number."""

SAMPLERS: Mapping[str, Sampler] = {"reinterpret": reinterpret}
