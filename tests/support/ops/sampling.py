"""Instances of sampling."""

from collections.abc import Mapping

from tests.support.ops.case import FLOATS, INTEGERS, Case, Draw, Sampler


def multinomial(draw: Draw) -> Case:
    """Rows that add up to at most 1, drawn from once each or by `sample_indices`."""
    rows, outcomes, dtype = draw.extent(), draw.extent(1), draw.choice(FLOATS)
    prob = draw.array((rows, outcomes), dtype, 0, 1)
    prob /= prob.sum(axis=1, keepdims=True)
    attrs = {"dtype": draw.choice(INTEGERS)}
    if draw.chance() or rows == 0:
        return Case((prob, draw.array((rows, 1), draw.choice(FLOATS), 0, 1.1)), attrs)
    count = draw.extent()
    chosen = draw.array((count, 1), draw.choice(INTEGERS), 0, rows - 1)
    return Case((prob, draw.array((count, 1), draw.choice(FLOATS), 0, 1), chosen), attrs)


SAMPLERS: Mapping[str, Sampler] = {"multinomial_from_uniform": multinomial}
