"""Instances of recurrent layers."""

from collections.abc import Mapping

from relax_egraph.ir.expr import Attr
from relax_egraph.ir.ops.recurrence import DIRECTIONS
from tests.support.ops.case import FLOATS, Array, Case, Draw, Sampler


def _layer(draw: Draw, gates: int, states: int) -> tuple[list[Array], str]:
    """The input, the recurrence and the first states, and a direction."""
    direction, dtype = draw.choice(list(DIRECTIONS)), draw.choice(FLOATS)
    count, (times, batch, size) = DIRECTIONS[direction], (draw.extent() for _ in range(3))
    width = gates * size
    shapes = [(times, batch, count * width), (count, size, width)]
    shapes += [(count, batch, size)] * states
    return [draw.array(shape, dtype, -1, 1) for shape in shapes], direction


def _lengths(draw: Draw, operands: list[Array]) -> list[Array]:
    """Perhaps lengths, some of no times or of more than there are."""
    times, batch, _ = operands[0].shape
    if draw.chance():
        return []
    return [draw.array((batch,), "int64", 0, times + 1)]


def rnn(draw: Draw) -> Case:
    """Any direction, with lengths of sequences or without."""
    operands, direction = _layer(draw, 1, 1)
    return Case((*operands, *_lengths(draw, operands)), {"direction": direction}, error=1e-5)


def lstm(draw: Draw) -> Case:
    """The same; states that are not 0."""
    operands, direction = _layer(draw, 4, 2)
    return Case((*operands, *_lengths(draw, operands)), {"direction": direction}, error=1e-5)


def gru(draw: Draw) -> Case:
    """The same; a reset before or after the product, with a bias or without."""
    operands, direction = _layer(draw, 3, 1)
    recurrence = operands[1]
    if draw.chance():
        operands.append(draw.array(recurrence.shape[:2], recurrence.dtype.name))
        operands += _lengths(draw, operands)
    attrs: dict[str, Attr] = {"direction": direction, "reset_after": draw.chance()}
    return Case(tuple(operands), attrs, error=1e-5)


SAMPLERS: Mapping[str, Sampler] = {"nn.rnn": rnn, "nn.lstm": lstm, "nn.gru": gru}
