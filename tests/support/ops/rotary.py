"""Instances of rotary position embedding."""

from collections.abc import Mapping

from tests.support.ops.case import FLOATS, Case, Draw, Sampler


def rotary_embedding(draw: Draw) -> Case:
    leading, dtype = draw.shape(0, 3), draw.choice(FLOATS)
    pairs = draw.extent()
    each = draw.chance()
    size = 2 * pairs if each else 2 * pairs + draw.choice([0, 0, 1, 3])
    angles = (*draw.part(leading), 2 * pairs if each else pairs)
    shapes = ((*leading, size), angles, angles)
    operands = tuple(draw.array(shape, dtype) for shape in shapes)
    return Case(operands, {"interleaved": draw.chance()})


SAMPLERS: Mapping[str, Sampler] = {"nn.rotary_embedding": rotary_embedding}
