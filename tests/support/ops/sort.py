"""Instances of sorting."""

from collections.abc import Mapping, Sequence

import numpy as np

from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.expr import Attr
from tests.support.ops.case import ANY, INTEGERS, Array, Case, Draw, Sampler


def tied(draw: Draw, shape: Sequence[int], dtype: str) -> Array:
    """Elements with ties, zeros of both signs and, for floats, NaN."""
    numbers = np.asarray(np.round(draw.array(shape, dtype))).astype(dtype)
    if is_float(dtype) and draw.chance():
        numbers[draw.array(shape, low=0, high=1) < 0.3] = np.nan
    return numbers


def sorting(draw: Draw, **attrs: Attr) -> Case:
    """A tensor of rank 1 or more, and an axis of it."""
    shape = draw.shape(1)
    axis = draw.axis(len(shape)) if draw.chance(0.8) else -1
    return Case((tied(draw, shape, draw.choice(ANY)),), {"axis": axis, **attrs})


def values(draw: Draw) -> Case:
    """Either order."""
    return sorting(draw, descending=draw.chance())


def indices(draw: Draw) -> Case:
    """Either order, and any dtype for indices."""
    return sorting(draw, descending=draw.chance(), dtype=draw.choice(INTEGERS))


def first(draw: Draw) -> Case:
    """Fewer elements than there are, as many, or more."""
    return sorting(
        draw,
        k=draw.integer(-1, 5),
        ret_type=draw.choice(("both", "values", "indices")),
        largest=draw.chance(),
        dtype=draw.choice(INTEGERS),
    )


SAMPLERS: Mapping[str, Sampler] = {"sort": values, "argsort": indices, "topk": first}
