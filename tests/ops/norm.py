"""Instances of normalisations."""

from collections.abc import Mapping

from tests.ops.case import FLOATS, Case, Draw, Sampler


def softmax(draw: Draw) -> Case:
    shape = draw.shape(1)
    return Case((draw.array(shape, draw.choice(FLOATS)),), {"axis": draw.axis(len(shape))})


SAMPLERS: Mapping[str, Sampler] = {"nn.softmax": softmax}
