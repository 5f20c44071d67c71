"""Instances of elementwise functions of one operand."""

from collections.abc import Mapping

from tests.ops.case import ANY, FLOATS, NUMBERS, Case, Draw, Sampler, elementwise


def astype(draw: Draw) -> Case:
    case = elementwise(1, ANY, 0, 100)(draw)
    return Case(case.operands, {"dtype": draw.choice(ANY)})


SAMPLERS: Mapping[str, Sampler] = {
    "abs": elementwise(1, ANY),
    "negative": elementwise(1, NUMBERS),
    **dict.fromkeys(["exp", "tanh", "erf", "sigmoid"], elementwise(1, FLOATS)),
    **dict.fromkeys(["log", "sqrt", "rsqrt"], elementwise(1, FLOATS, 0.1, 9)),
    "astype": astype,
}
