"""Instances of elementwise functions of two or three operands."""

from collections.abc import Mapping

from tests.support.ops.case import ANY, FLOATS, INTEGERS, NUMBERS, Case, Draw, Sampler, elementwise

BITS = (*INTEGERS, "bool")


def where(draw: Draw) -> Case:
    whole, dtype = draw.shape(), draw.choice(ANY)
    shapes = [whole, draw.part(whole), draw.part(whole)]
    draw.random.shuffle(shapes)
    condition, x, y = shapes
    return Case((draw.array(condition, "bool"), draw.array(x, dtype), draw.array(y, dtype)))


def of_one_shape(draw: Draw) -> Case:
    shape, dtype = draw.shape(), draw.choice(ANY)
    return Case((draw.array(shape, dtype), draw.array(shape, dtype)))


SAMPLERS: Mapping[str, Sampler] = {
    "ewise_add": of_one_shape,
    **dict.fromkeys(["add", "multiply", "maximum", "minimum"], elementwise(2, ANY)),
    **dict.fromkeys(["greater", "less", "equal"], elementwise(2, ANY)),
    "subtract": elementwise(2, NUMBERS),
    "divide": elementwise(2, FLOATS, 0.5, 4),
    "power": elementwise(2, FLOATS, 0.5, 4),
    **dict.fromkeys(["floor_divide", "floor_mod", "mod"], elementwise(2, NUMBERS, -9, 9)),
    **dict.fromkeys(["log_add_exp", "atan2"], elementwise(2, FLOATS)),
    **dict.fromkeys(["greater_equal", "less_equal", "not_equal"], elementwise(2, ANY)),
    **{f"bitwise_{kind}": elementwise(2, BITS, -99, 99) for kind in ("and", "or", "xor")},
    **{f"logical_{kind}": elementwise(2, ["bool"]) for kind in ("and", "or", "xor")},
    **dict.fromkeys(["left_shift", "right_shift"], elementwise(2, INTEGERS, -3, 70)),
    "ewise_fma": elementwise(3, ANY),
    "where": where,
}
