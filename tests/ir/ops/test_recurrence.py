"""Recurrent layers: numbers, directions, and what is refused."""

from typing import Any

import numpy as np
import pytest

from relax_egraph.ir import dims
from relax_egraph.ir.expr import Attr, Expr
from relax_egraph.ir.struct_info import TupleStructInfo, tensor
from tests.support.applied import both, computed, f32, inferred, of, refusal

t, b = dims.symbol("t"), dims.symbol("b")


def drawn(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def test_an_lstm_of_one_element_is_its_formulas() -> None:
    x, weights = [0.1, 0.2, 0.3, 0.4], [0.5, 0.6, 0.7, 0.8]
    i, o, f, g = (a + 0.9 * w for a, w in zip(x, weights, strict=True))
    c = sigmoid(f) * 0.25 + sigmoid(i) * np.tanh(g)
    h = sigmoid(o) * np.tanh(c)

    for result in both("nn.lstm", f32([[x]]), f32([[weights]]), f32([[[0.9]]]), f32([[[0.25]]])):
        for actual, expected in zip(result, (h, h, c), strict=True):
            np.testing.assert_allclose(actual, f32([[[expected]]]), rtol=1e-6, strict=True)


@pytest.mark.parametrize("reset_after", [False, True])
def test_a_gru_of_two_elements_is_its_formulas(reset_after: bool) -> None:
    x, weights, h, bias = drawn(1, 1, 6), drawn(1, 2, 6, seed=1), drawn(1, 1, 2, seed=2), f32(3, 4)
    z, r = np.split(sigmoid(x[0] + h[0] @ weights[0])[:, :4], 2, 1)
    last = weights[0][:, 4:]
    product = r * (h[0] @ last + bias) if reset_after else (r * h[0]) @ last + bias
    expected = z * h[0] + (1 - z) * np.tanh(x[0, :, 4:] + product)

    for result in both("nn.gru", x, weights, h, f32([bias]), reset_after=reset_after):
        for actual in result:
            np.testing.assert_allclose(actual, f32([expected]), rtol=1e-5, strict=True)


OPERANDS = (drawn(5, 3, 16), drawn(1, 4, 16, seed=1), drawn(1, 3, 4, seed=2), drawn(1, 3, 4))


def test_a_reverse_layer_runs_on_reversed_inputs() -> None:
    x, *others = OPERANDS
    forward = computed("nn.lstm", x[::-1].copy(), *others)

    for every, *last in both("nn.lstm", *OPERANDS, direction="reverse"):
        np.testing.assert_allclose(every[::-1], forward[0], rtol=1e-5)
        np.testing.assert_allclose(last, forward[1:], rtol=1e-5)


@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_a_sequence_with_a_length_is_a_shorter_sequence(direction: str) -> None:
    x, recurrence, *states = OPERANDS
    lengths = np.array([5, 2, 0])

    for every, *last in both("nn.lstm", *OPERANDS, lengths, direction=direction):
        for k, end in enumerate(lengths):
            alone = [x[:end, k : k + 1], recurrence, *(s[:, k : k + 1] for s in states)]
            expected = computed("nn.lstm", *alone, direction=direction)
            np.testing.assert_allclose(every[:end, k : k + 1], expected[0], rtol=1e-5)
            np.testing.assert_array_equal(every[end:, k], 0)
            for state, other in zip(last, expected[1:], strict=True):
                np.testing.assert_allclose(state[:, k : k + 1], other, rtol=1e-5)


def test_both_directions_are_side_by_side() -> None:
    one = [computed("nn.lstm", *OPERANDS, direction=d) for d in ("forward", "reverse")]
    twice = (np.concatenate([o, o], 2 if k == 0 else 0) for k, o in enumerate(OPERANDS))

    for result in both("nn.lstm", *twice, direction="bidirectional"):
        for place, axis in enumerate((2, 0, 0)):
            expected = np.concatenate([o[place] for o in one], axis)
            np.testing.assert_allclose(result[place], expected, rtol=1e-5, atol=1e-6)


def test_without_times_the_states_stay() -> None:
    x, *others = OPERANDS

    for every, hidden, cell in both("nn.lstm", x[:0], *others):
        assert every.shape == (0, 3, 4)
        np.testing.assert_array_equal(hidden, others[1])
        np.testing.assert_array_equal(cell, others[2])


LAYER = (of(t, b, 32), of(2, 4, 16), of(2, b, 4), of(2, b, 4))
BOTH: dict[str, Attr] = {"direction": "bidirectional"}


def test_the_results_are_all_times_and_the_last_states() -> None:
    state = tensor((2, b, 4), "float32")

    assert inferred("nn.lstm", *LAYER, **BOTH) == TupleStructInfo(
        (tensor((t, b, 8), "float32"), state, state)
    )
    assert inferred("nn.gru", of(t, b, 12), of(1, 4, 12), of(1, b, 4)) == TupleStructInfo(
        (tensor((t, b, 4), "float32"), tensor((1, b, 4), "float32"))
    )


REFUSED: list[tuple[tuple[Expr, ...], dict[str, Attr], str]] = [
    (
        LAYER,
        {"direction": "up"},
        'direction is "up", needs "forward", "reverse" or "bidirectional"',
    ),
    ((*LAYER, of(b, 1, dtype="int64")), BOTH, "lengths has rank 2, needs 1"),
    ((*LAYER, of(b, dtype="int32")), BOTH, "lengths is of int32, needs int64"),
    (LAYER, {}, "recurrence has shape (2, 4, 16), needs (1, 4, 16)"),
    ((of(t, b, 16), *LAYER[1:]), BOTH, "projected has shape (t, b, 16), needs (t, b, 32)"),
    ((*LAYER[:3], of(2, 7, 5)), BOTH, "cell has shape (2, 7, 5), needs (2, b, 4)"),
    ((*LAYER[:2], of(b, 4), LAYER[3]), BOTH, "hidden has rank 2, needs 3"),
    ((*LAYER[:3], of(2, b, 4, dtype="float64")), BOTH, "needs operands of one dtype"),
    ((of(t, b, 32, dtype="int32"), *LAYER[1:]), BOTH, "needs floating-point tensors"),
]


@pytest.mark.parametrize(("operands", "attrs", "message"), REFUSED)
def test_ill_typed_layers_are_refused(
    operands: tuple[Expr, ...], attrs: dict[str, Attr], message: str
) -> None:
    assert refusal("nn.lstm", *operands, **attrs).endswith(f": {message}")


def test_a_bias_of_another_shape_is_refused() -> None:
    said = refusal("nn.gru", of(t, b, 12), of(1, 4, 12), of(1, b, 4), of(1, 12))

    assert said.endswith(": bias has shape (1, 12), needs (1, 4)")
