"""Instances of reductions."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tests.support.ops.case import ANY, FLOATS, NUMBERS, Case, Draw, Sampler
from tests.support.ops.sort import tied


def reduction(dtypes: Sequence[str]) -> Sampler:
    """Reductions of any axes, or of all."""

    def sample(draw: Draw) -> Case:
        shape = draw.shape()
        axis = draw.axes(len(shape)) if draw.chance(0.7) else None
        attrs = {"axis": axis, "keepdims": draw.chance()}
        return Case((draw.array(shape, draw.choice(dtypes)),), attrs, 2e-5)

    return sample


def median(draw: Draw) -> Case:
    """Medians over axes that have an element, often over one; some elements are NaN."""
    shape = list(draw.shape(1))
    axes = draw.axes(len(shape)) if draw.chance() else (draw.axis(len(shape)),)
    axis = None if draw.chance(0.2) else axes
    for a in range(len(shape)) if axis is None else axis:
        shape[a] = max(shape[a], 1)
    attrs = {"axis": axis, "keepdims": draw.chance()}
    return Case((tied(draw, shape, draw.choice(ANY)),), attrs)


def collapse_to(draw: Draw) -> Case:
    """Sums to a shape that broadcasts to the operand's."""
    shape = draw.shape()
    return Case((draw.array(shape, draw.choice(ANY)), draw.part(shape)), error=2e-5)


def collapse_like(draw: Draw) -> Case:
    """Sums to the shape of a tensor of any dtype."""
    case = collapse_to(draw)
    data, shape = case.operands
    return replace(case, operands=(data, draw.array(shape, draw.choice(NUMBERS))))


SAMPLERS: Mapping[str, Sampler] = {
    **dict.fromkeys(["sum", "max", "min", "prod"], reduction(ANY)),
    **dict.fromkeys(["mean", "variance", "std"], reduction(FLOATS)),
    "median": median,
    "collapse_sum_to": collapse_to,
    "collapse_sum_like": collapse_like,
}
