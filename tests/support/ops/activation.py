"""Instances of activation functions."""

from collections.abc import Mapping

from tests.support.ops.case import ANY, FLOATS, NUMBERS, Case, Draw, Sampler, elementwise


def prelu(draw: Draw) -> Case:
    shape, dtype = draw.shape(least=1), draw.choice(FLOATS)
    axis = draw.axis(len(shape))
    alpha = draw.array((shape[axis],), dtype)
    attrs = {} if axis == 1 and draw.chance() else {"axis": axis}
    return Case((draw.array(shape, dtype), alpha), attrs)


def leakyrelu(draw: Draw) -> Case:
    case = elementwise(1, FLOATS)(draw)
    return Case(case.operands, draw.choice([{}, {"alpha": 0.25}, {"alpha": -2.0}]))


def softplus(draw: Draw) -> Case:
    case = elementwise(1, FLOATS, -9, 9)(draw)
    return Case(case.operands, draw.choice([{}, {"beta": 3.0}, {"beta": -0.5}, {"threshold": 2.0}]))


SAMPLERS: Mapping[str, Sampler] = {
    "nn.relu": elementwise(1, ANY),
    "nn.relu6": elementwise(1, NUMBERS, -3, 9),
    "nn.leakyrelu": leakyrelu,
    "nn.prelu": prelu,
    "nn.selu": elementwise(1, FLOATS),
    "nn.softplus": softplus,
    **dict.fromkeys(["nn.gelu", "nn.gelu_tanh", "nn.silu"], elementwise(1, FLOATS)),
}
