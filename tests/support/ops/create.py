"""Instances of creation."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.support.ops.case import ANY, FLOATS, INTEGERS, NUMBERS, Case, Draw, Sampler

TARGETS = (*NUMBERS, "bool", None)


def shaped(draw: Draw) -> Case:
    return Case((draw.shape(),), {"dtype": draw.choice(ANY)})


def like(draw: Draw) -> Case:
    x = draw.array(draw.shape(), draw.choice(ANY))
    return Case((x,), {"dtype": draw.choice(TARGETS)})


def full(draw: Draw) -> Case:
    value = draw.array((), draw.choice(ANY), 0)
    return Case((draw.shape(), value), {"dtype": draw.choice(TARGETS)})


def full_like(draw: Draw) -> Case:
    value = draw.array((), draw.choice(ANY), 0)
    x = draw.array(draw.shape(), draw.choice(ANY))
    return Case((x, value), {"dtype": draw.choice(TARGETS)})


def some(draw: Draw, required: int, operands: Sequence[Any]) -> tuple[Any, ...]:
    """The first of `operands`, at least the required ones."""
    return tuple(operands[: draw.integer(required, len(operands))])


def arange(draw: Draw) -> Case:
    if draw.chance(0.6):
        step = draw.choice([1, 1, 2, 3, -1, -2])
        numbers = some(draw, 1, (draw.integer(-6, 6), draw.integer(-6, 9), step))
        return Case(numbers, {"dtype": draw.choice([*NUMBERS, None])})
    step = draw.choice([0.5, 0.3, 1.0, 2, -0.75])
    numbers = some(draw, 1, (draw.integer(-6, 6) / 4, draw.choice([4, 2.5, -3.25]), step))
    return Case(numbers, {"dtype": draw.choice([*FLOATS, "int32", "bool", None])})


def one_hot(draw: Draw) -> Case:
    shape = draw.shape()
    indices = draw.array(shape, draw.choice(INTEGERS), -2, 5)
    values = draw.choice([(1, 0), (1.0, 0.0), (-2, 7), (0.5, -0.25)])
    attrs = {"depth": draw.integer(1, 6), "axis": draw.axis(len(shape) + 1)}
    return Case((indices, *values), attrs)


def eye(draw: Draw) -> Case:
    operands = some(draw, 1, (draw.extent(), draw.extent(), draw.integer(-3, 3)))
    return Case(operands, {"dtype": draw.choice(ANY)})


def eye_like(draw: Draw) -> Case:
    x = draw.array(draw.shape(2, 2), draw.choice(ANY))
    return Case(some(draw, 1, (x, draw.integer(-3, 3))), {"dtype": draw.choice(TARGETS)})


def triangle(draw: Draw) -> Case:
    x = draw.array(draw.shape(2, 4), draw.choice(ANY))
    return Case(some(draw, 1, (x, draw.integer(-4, 4))))


def hamming_window(draw: Draw) -> Case:
    parameters = (draw.extent(), draw.integer(0, 1), 0.5, 0.25)
    return Case(some(draw, 1, parameters), {"dtype": draw.choice(FLOATS)})


SAMPLERS: Mapping[str, Sampler] = {
    "full": full,
    "full_like": full_like,
    "arange": arange,
    "one_hot": one_hot,
    "eye": eye,
    "eye_like": eye_like,
    "hamming_window": hamming_window,
    **dict.fromkeys(("ones", "zeros"), shaped),
    **dict.fromkeys(("ones_like", "zeros_like"), like),
    **dict.fromkeys(("tril", "triu"), triangle),
}
