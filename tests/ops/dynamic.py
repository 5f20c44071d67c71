"""Instances of operators whose result's shape depends on data."""

from collections.abc import Mapping

from tests.ops.case import ANY, Case, Draw, Sampler


def of_any(draw: Draw) -> Case:
    """A tensor of any shape and dtype."""
    return Case((draw.array(draw.shape(), draw.choice(ANY)),))


SAMPLERS: Mapping[str, Sampler] = {"unique": of_any, "shape_of": of_any}
