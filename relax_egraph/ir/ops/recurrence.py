"""Recurrent layers, in the namespace ``R.nn``: the loop over time, after the product of all inputs.

A layer runs in time order ("forward"), in the opposite order ("reverse"), or as one of each
("bidirectional").  With `d` directions, `n` elements of a state and `g` gates, its input is of
shape (time, batch, d·g·n), its recurrence (d, n, g·n), and a state (d, batch, n).
"""

from collections.abc import Mapping

from relax_egraph.errors import IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.op import op
from relax_egraph.ir.ops.operand_checks import has_rank, has_shape, one_float, subject_of
from relax_egraph.ir.struct_info import (
    Shape,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    tensor,
)

DIRECTIONS: Mapping[str, int] = {"forward": 1, "reverse": 1, "bidirectional": 2}
"""The number of directions, by the name of the attribute's value."""


@op("nn")
def lstm(
    projected: TensorStructInfo,
    recurrence: TensorStructInfo,
    hidden: TensorStructInfo,
    cell: TensorStructInfo,
    *,
    direction: str = "forward",
) -> StructInfo:
    """``out`` is the hidden states of all times, and the last hidden and cell state, of an LSTM.

    The gates input, output, forget and candidate are ``projected[t] + hidden · recurrence``::

        cell = sigmoid(forget) · cell + sigmoid(input) · tanh(candidate)
        hidden = sigmoid(output) · tanh(cell)

    The shapes are (time, batch, d·n) of all times, and (d, batch, n) of a state.
    """
    states = {"hidden": hidden, "cell": cell}
    return _recurrent("nn.lstm", 4, projected, recurrence, states, None, direction)


@op("nn")
def gru(
    projected: TensorStructInfo,
    recurrence: TensorStructInfo,
    hidden: TensorStructInfo,
    bias: TensorStructInfo | None = None,
    *,
    direction: str = "forward",
    reset_after: bool = False,
) -> StructInfo:
    """``out`` is the hidden states of all times, and the last one, of a gated recurrent unit.

    The gates update and reset are ``sigmoid(projected[t] + hidden · recurrence)``, the new state is
    ``update · hidden + (1 - update) · candidate``.  Its candidate resets the state before or after
    the product with its part of the recurrence, to which `bias`, of shape (d, n), is added::

        tanh(projected[t] + ((reset · hidden) · recurrence + bias))
        tanh(projected[t] + reset · (hidden · recurrence + bias))

    The shapes are (time, batch, d·n) of all times, and (d, batch, n) of the last state.
    """
    states = {"hidden": hidden}
    return _recurrent("nn.gru", 3, projected, recurrence, states, bias, direction)


def _recurrent(
    name: str,
    gates: int,
    projected: TensorStructInfo,
    recurrence: TensorStructInfo,
    states: Mapping[str, TensorStructInfo],
    bias: TensorStructInfo | None,
    direction: str,
) -> TupleStructInfo:
    operands = {"projected": projected, "recurrence": recurrence, **states}
    subject = subject_of(name, *operands.values(), *(() if bias is None else (bias,)))
    dtype = one_float(subject, *operands.values(), *(() if bias is None else (bias,)))
    if direction not in DIRECTIONS:
        raise IllTyped(
            f'{subject}: direction is "{direction}", needs "forward", "reverse" or "bidirectional"'
        )
    for what, info in operands.items():
        has_rank(subject, what, info, 3)
    if bias is not None:
        has_rank(subject, "bias", bias, 2)
    count, size = DIRECTIONS[direction], _state_size(recurrence, states)
    times, batch = projected.dims[:2] if projected.dims is not None else (None, None)
    if size is None:
        return TupleStructInfo((tensor(None, dtype, 3),) * (1 + len(states)))
    width = dims.mul(size, gates)
    has_shape(subject, "recurrence", recurrence, (count, size, width))
    if bias is not None:
        has_shape(subject, "bias", bias, (count, size))
    if times is None or batch is None:
        return TupleStructInfo((tensor(None, dtype, 3),) * (1 + len(states)))
    has_shape(subject, "projected", projected, (times, batch, dims.mul(width, count)))
    state: Shape = (count, batch, size)
    for what, info in states.items():
        has_shape(subject, what, info, state)
    every = tensor((times, batch, dims.mul(size, count)), dtype)
    return TupleStructInfo((every, *(tensor(state, dtype) for _ in states)))


def _state_size(recurrence: TensorStructInfo, states: Mapping[str, TensorStructInfo]) -> Dim | None:
    """The number of elements of a state, from the first operand that tells."""
    if recurrence.dims is not None:
        return recurrence.dims[1]
    return next((info.dims[2] for info in states.values() if info.dims is not None), None)
