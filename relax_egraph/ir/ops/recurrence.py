"""Recurrent layers, in the namespace ``R.nn``: the loop over time, after the product of all inputs.

A layer runs in time order ("forward"), in the opposite order ("reverse"), or as one of each
("bidirectional").  With `d` directions, `n` elements of a state and `g` gates, its input is of
shape (time, batch, d·g·n), its recurrence (d, n, g·n), and a state (d, batch, n).  Of several
sequences, each may have a length: what lies beyond is ignored, and the output there is 0; in the
opposite order, a sequence begins at its end.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from relax_egraph.errors import IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.op import op
from relax_egraph.ir.ops.operand_checks import (
    has_rank,
    has_shape,
    is_vector,
    one_float,
    subject_of,
)
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
def rnn(
    projected: TensorStructInfo,
    recurrence: TensorStructInfo,
    hidden: TensorStructInfo,
    lengths: TensorStructInfo | None = None,
    *,
    direction: str = "forward",
) -> StructInfo:
    """``out`` is the hidden states of all times, and the last one, of a recurrent layer.

    They are ``hidden = tanh(projected[t] + hidden · recurrence)``, of shape (time, batch, d·n), and
    (d, batch, n).
    """
    return _recurrent(_Layer("nn.rnn", 1, direction), projected, recurrence, (hidden,), lengths)


@op("nn")
def lstm(
    projected: TensorStructInfo,
    recurrence: TensorStructInfo,
    hidden: TensorStructInfo,
    cell: TensorStructInfo,
    lengths: TensorStructInfo | None = None,
    *,
    direction: str = "forward",
) -> StructInfo:
    """``out`` is the hidden states of all times, and the last hidden and cell state, of an LSTM.

    The gates input, output, forget and candidate are ``projected[t] + hidden · recurrence``::

        cell = sigmoid(forget) · cell + sigmoid(input) · tanh(candidate)
        hidden = sigmoid(output) · tanh(cell)

    The shapes are (time, batch, d·n) of all times, and (d, batch, n) of a state.
    """
    layer = _Layer("nn.lstm", 4, direction)
    return _recurrent(layer, projected, recurrence, (hidden, cell), lengths)


@op("nn")
def gru(
    projected: TensorStructInfo,
    recurrence: TensorStructInfo,
    hidden: TensorStructInfo,
    bias: TensorStructInfo | None = None,
    lengths: TensorStructInfo | None = None,
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
    layer = _Layer("nn.gru", 3, direction)
    return _recurrent(layer, projected, recurrence, (hidden,), lengths, bias)


_STATES = ("hidden", "cell")


@dataclass(frozen=True, slots=True)
class _Layer:
    """The operator, its number of gates, and its direction."""

    name: str
    gates: int
    direction: str


def _recurrent(
    layer: _Layer,
    projected: TensorStructInfo,
    recurrence: TensorStructInfo,
    states: tuple[TensorStructInfo, ...],
    lengths: TensorStructInfo | None,
    bias: TensorStructInfo | None = None,
) -> TupleStructInfo:
    named = {"projected": projected, "recurrence": recurrence}
    named |= dict(zip(_STATES, states, strict=False))
    floats = [*named.values(), *(() if bias is None else (bias,))]
    subject = subject_of(layer.name, *floats, *(() if lengths is None else (lengths,)))
    dtype = one_float(subject, *floats)
    if layer.direction not in DIRECTIONS:
        raise IllTyped(
            f'{subject}: direction is "{layer.direction}", '
            'needs "forward", "reverse" or "bidirectional"'
        )
    for what, info in named.items():
        has_rank(subject, what, info, 3)
    count, size = DIRECTIONS[layer.direction], _state_size(recurrence, states)
    times, batch = projected.dims[:2] if projected.dims is not None else (None, None)
    if bias is not None:
        has_rank(subject, "bias", bias, 2)
        has_shape(subject, "bias", bias, None if size is None else (count, size))
    if lengths is not None:
        is_vector(subject, "lengths", lengths, batch)
        if lengths.dtype not in (None, "int64"):
            raise IllTyped(f"{subject}: lengths is of {lengths.dtype}, needs int64")
    unknown = TupleStructInfo((tensor(None, dtype, 3),) * (1 + len(states)))
    if size is None:
        return unknown
    width = dims.mul(size, layer.gates)
    has_shape(subject, "recurrence", recurrence, (count, size, width))
    if times is None or batch is None:
        return unknown
    has_shape(subject, "projected", projected, (times, batch, dims.mul(width, count)))
    state: Shape = (count, batch, size)
    for what, info in zip(_STATES, states, strict=False):
        has_shape(subject, what, info, state)
    every = tensor((times, batch, dims.mul(size, count)), dtype)
    return TupleStructInfo((every, *(tensor(state, dtype) for _ in states)))


def _state_size(recurrence: TensorStructInfo, states: tuple[TensorStructInfo, ...]) -> Dim | None:
    """The number of elements of a state, from the first operand that tells."""
    if recurrence.dims is not None:
        return recurrence.dims[1]
    return next((info.dims[2] for info in states if info.dims is not None), None)
