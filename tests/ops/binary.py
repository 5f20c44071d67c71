"""Instances of elementwise functions of two operands and three."""

from collections.abc import Mapping

from tests.ops.case import ANY, FLOATS, NUMBERS, Case, Draw, Sampler, elementwise


def where(draw: Draw) -> Case:
    whole, dtype = draw.shape(), draw.choice(ANY)
    shapes = [whole, draw.part(whole), draw.part(whole)]
    draw.random.shuffle(shapes)
    condition, x, y = shapes
    return Case((draw.array(condition, "bool"), draw.array(x, dtype), draw.array(y, dtype)))


SAMPLERS: Mapping[str, Sampler] = {
    **dict.fromkeys(["add", "multiply", "maximum", "minimum"], elementwise(2, ANY)),
    **dict.fromkeys(["greater", "less", "equal"], elementwise(2, ANY)),
    "subtract": elementwise(2, NUMBERS),
    "divide": elementwise(2, FLOATS, 0.5, 4),
    "power": elementwise(2, FLOATS, 0.5, 4),
    "ewise_fma": elementwise(3, ANY),
    "where": where,
}
