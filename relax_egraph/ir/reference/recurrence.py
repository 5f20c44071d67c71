"""Recurrent layers: one step of all sequences after the other."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from relax_egraph.ir.ops.recurrence import DIRECTIONS
from relax_egraph.ir.reference.array import Array, Reference

_Step: TypeAlias = Callable[[Array, tuple[Array, ...], int], tuple[Array, ...]]
"""Maps the projected input of a time, the states, and a direction to the next states."""


def _rnn(
    projected: Array,
    recurrence: Array,
    hidden: Array,
    lengths: Array | None = None,
    *,
    direction: str,
) -> tuple[Array, ...]:
    weights = recurrence.astype(np.float64)

    def step(x: Array, states: tuple[Array, ...], d: int) -> tuple[Array, ...]:
        return (np.tanh(x + states[0] @ weights[d]),)

    return _run(step, 1, projected, recurrence, (hidden,), lengths, direction)


def _lstm(
    projected: Array,
    recurrence: Array,
    hidden: Array,
    cell: Array,
    lengths: Array | None = None,
    *,
    direction: str,
) -> tuple[Array, ...]:
    weights = recurrence.astype(np.float64)

    def step(x: Array, states: tuple[Array, ...], d: int) -> tuple[Array, ...]:
        h, c = states
        i, o, f, g = np.split(x + h @ weights[d], 4, axis=-1)
        c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
        return _sigmoid(o) * np.tanh(c), c

    return _run(step, 4, projected, recurrence, (hidden, cell), lengths, direction)


def _gru(
    projected: Array,
    recurrence: Array,
    hidden: Array,
    bias: Array | None = None,
    lengths: Array | None = None,
    *,
    direction: str,
    reset_after: bool,
) -> tuple[Array, ...]:
    weights, size = recurrence.astype(np.float64), recurrence.shape[1]
    added = np.zeros((len(weights), size)) if bias is None else bias.astype(np.float64)
    if added.shape != (len(weights), size):
        raise ValueError(f"bias has shape {added.shape}, needs {(len(weights), size)}")

    def step(x: Array, states: tuple[Array, ...], d: int) -> tuple[Array, ...]:
        (h,) = states
        gates, last = weights[d][:, : 2 * size], weights[d][:, 2 * size :]
        z, r = np.split(_sigmoid(x[:, : 2 * size] + h @ gates), 2, axis=-1)
        product = r * (h @ last + added[d]) if reset_after else (r * h) @ last + added[d]
        candidate = np.tanh(x[:, 2 * size :] + product)
        return ((1 - z) * candidate + z * h,)

    return _run(step, 3, projected, recurrence, (hidden,), lengths, direction)


def _sigmoid(x: Array) -> Array:
    return np.exp(-np.logaddexp(0, -x))


def _run(
    step: _Step,
    gates: int,
    projected: Array,
    recurrence: Array,
    states: tuple[Array, ...],
    lengths: Array | None,
    direction: str,
) -> tuple[Array, ...]:
    """The hidden states of all times, and the last states, rounded once."""
    count, (times, batch, width) = DIRECTIONS[direction], projected.shape
    size = recurrence.shape[1]
    if recurrence.shape != (count, size, gates * size) or width != count * gates * size:
        raise ValueError("recurrence does not fit the projected input")
    if any(s.shape != (count, batch, size) for s in states):
        raise ValueError(f"a state needs shape {(count, batch, size)}")
    if lengths is not None and lengths.shape != (batch,):
        raise ValueError(f"lengths has shape {lengths.shape}, needs {(batch,)}")
    ends = np.full(batch, times) if lengths is None else np.minimum(lengths, times)
    inputs = projected.astype(np.float64).reshape(times, batch, count, gates * size)
    every = np.zeros((times, batch, count, size))
    last = [s.astype(np.float64) for s in states]
    for d in range(count):
        is_reverse = direction == "reverse" or d == 1
        for t in range(times):
            rows = np.flatnonzero(t < ends)
            at = ends[rows] - 1 - t if is_reverse else t
            now = step(inputs[at, rows, d], tuple(s[d, rows] for s in last), d)
            every[at, rows, d] = now[0]
            for state, new in zip(last, now, strict=True):
                state[d, rows] = new
    results: list[Any] = [every.reshape(times, batch, count * size), *last]
    return tuple(r.astype(projected.dtype) for r in results)


REFERENCE: Mapping[str, Reference] = {"nn.rnn": _rnn, "nn.lstm": _lstm, "nn.gru": _gru}
