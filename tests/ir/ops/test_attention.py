"""Attention: numbers, masks, edges, and what is refused."""

from typing import Any

import numpy as np
import pytest

from relax_egraph.errors import RunError
from relax_egraph.ir import dims
from relax_egraph.ir.expr import Attr, Expr
from relax_egraph.ir.struct_info import tensor
from tests.support.applied import both, compiled, computed, f32, inferred, of, refusal
from tests.support.legalized import static

n, m = dims.symbol("n"), dims.symbol("m")
NAN = np.nan


def seen_by(queries: int, keys: int, **attrs: Attr) -> list[Any]:
    """Which share of its attention each query gives each key, all of which are alike."""
    query = np.zeros((1, queries, 1, 2), np.float32)
    key = np.ones((1, keys, 1, 2), np.float32)
    value = np.eye(keys, dtype=np.float32).reshape(1, keys, 1, keys)
    return [r[0, :, 0, :] for r in both("nn.attention", query, key, value, **attrs)]


@pytest.mark.parametrize(
    ("queries", "keys", "attrs", "expected"),
    [
        (1, 4, {}, [[0.25, 0.25, 0.25, 0.25]]),
        (3, 3, {"causal_mask": "TopLeft"}, [[1, 0, 0], [1 / 2, 1 / 2, 0], [1 / 3, 1 / 3, 1 / 3]]),
        (2, 4, {"causal_mask": "TopLeft"}, [[1, 0, 0, 0], [0.5, 0.5, 0, 0]]),
        (2, 4, {"causal_mask": "BottomRight"}, [[1 / 3, 1 / 3, 1 / 3, 0], [0.25] * 4]),
        (3, 2, {"causal_mask": "TopLeft"}, [[1, 0], [0.5, 0.5], [0.5, 0.5]]),
        (3, 2, {"causal_mask": "BottomRight"}, [[0.5, 0.5]] * 3),
        (
            *(3, 3),
            {"causal_mask": "TopLeft", "window_size": 2},
            [[1, 0, 0], [0.5, 0.5, 0], [0, 0.5, 0.5]],
        ),
        (1, 4, {"causal_mask": "BottomRight", "window_size": 2}, [[0, 0, 0.5, 0.5]]),
        (3, 1, {"causal_mask": "TopLeft", "window_size": 2}, [[1], [1], [NAN]]),
    ],
)
def test_a_mask_leaves_a_query_the_keys_before_it(
    queries: int, keys: int, attrs: dict[str, Attr], expected: list[list[float]]
) -> None:
    for shares in seen_by(queries, keys, **attrs):
        np.testing.assert_allclose(shares, f32(expected), rtol=1e-6, strict=True)


def test_scores_are_scaled_by_the_root_of_the_size_of_a_head() -> None:
    query = f32([2, 0, 0, 0]).reshape(1, 1, 1, 4)
    key = f32([[np.log(3), 5, 5, 5], [0, 5, 5, 5]]).reshape(1, 2, 1, 4)
    value = f32([4, 8]).reshape(1, 2, 1, 1)

    for result in both("nn.attention", query, key, value):
        np.testing.assert_allclose(result, f32([5]).reshape(1, 1, 1, 1), rtol=1e-6, strict=True)


def test_a_given_scale_and_a_bias_are_those_of_the_softmax() -> None:
    query, key = f32([1]).reshape(1, 1, 1, 1), f32([2, 4]).reshape(1, 2, 1, 1)
    bias = f32([np.log(3), 0]).reshape(1, 1, 1, 2) + f32([1, 0])

    for name in ("nn.attention", "nn.attention_bias"):
        for result in both(name, query, key, f32([4, 8]).reshape(1, 2, 1, 1), bias, scale=0.5):
            np.testing.assert_allclose(result.ravel(), f32([5]), rtol=1e-6, strict=True)


def test_each_head_of_the_keys_serves_a_run_of_heads_of_the_query() -> None:
    query = np.zeros((1, 1, 4, 1), np.float32)
    key = np.zeros((1, 1, 1, 1), np.float32)
    value = f32([10, 20]).reshape(1, 1, 2, 1)

    for result in (*both("nn.attention", query, key, value),):
        np.testing.assert_array_equal(result.ravel(), f32(10, 10, 20, 20), strict=True)
    grouped = compiled("nn.attention", query, key, value, known=static)
    np.testing.assert_array_equal(grouped.ravel(), f32(10, 10, 20, 20), strict=True)


def test_attention_over_no_keys_is_0() -> None:
    query, key = np.ones((1, 2, 1, 3), np.float32), np.ones((1, 0, 1, 3), np.float32)

    for result in both("nn.attention", query, key, key):
        np.testing.assert_array_equal(result, np.zeros((1, 2, 1, 3), np.float32), strict=True)


Q, K = of(2, 5, 4, 8), of(2, 7, 2, 8)
SAID = 'R.nn.attention of R.Tensor((2, 5, 4, 8), "float32"), R.Tensor((2, 7, 2, 8), "float32"), '

REFUSED: list[tuple[tuple[Expr, ...], dict[str, Attr], str]] = [
    ((Q, K, of(2, 7, 16)), {}, 'R.Tensor((2, 7, 16), "float32"): value has rank 3, needs 4'),
    (
        (Q, K, of(2, 6, 2, 8)),
        {},
        'R.Tensor((2, 6, 2, 8), "float32"): the sequences of key and value differ: 7 and 6',
    ),
    (
        (Q, K, of(3, 7, 2, 8)),
        {},
        'R.Tensor((3, 7, 2, 8), "float32"): the batches of query and value differ: 2 and 3',
    ),
    (
        (Q, K, of(2, 7, 3, 8)),
        {},
        'R.Tensor((2, 7, 3, 8), "float32"): the 4 heads of query are no multiple of the 3 of value',
    ),
    (
        (Q, K, K, of(2, 1, 5, 1)),
        {},
        'R.Tensor((2, 7, 2, 8), "float32"), R.Tensor((2, 1, 5, 1), "float32"): bias has shape '
        "(2, 1, 5, 1), needs (2, 4, 5, 7), where any extent but the last may be 1",
    ),
    (
        (Q, K, K),
        {"causal_mask": "Top"},
        "R.Tensor((2, 7, 2, 8), \"float32\"): causal_mask is 'Top', "
        'needs "TopLeft", "BottomRight" or None',
    ),
    (
        (Q, K, K),
        {"window_size": 3},
        'R.Tensor((2, 7, 2, 8), "float32"): window_size is 3, '
        "needs at least 1 and a causal_mask beside it",
    ),
]


@pytest.mark.parametrize(("args", "attrs", "message"), REFUSED)
def test_ill_typed_attention_is_refused(
    args: tuple[Expr, ...], attrs: dict[str, Attr], message: str
) -> None:
    assert refusal("nn.attention", *args, **attrs) == SAID + message


def test_heads_of_other_sizes_are_refused() -> None:
    message = refusal("nn.attention", Q, of(2, 7, 2, 9), K)

    assert message == (
        'R.nn.attention of R.Tensor((2, 5, 4, 8), "float32"), R.Tensor((2, 7, 2, 9), "float32"), '
        'R.Tensor((2, 7, 2, 8), "float32"): '
        "the heads of query and key, in elements, differ: 8 and 9"
    )


def test_symbolic_attention_has_the_sequence_of_the_query_and_the_size_of_the_value() -> None:
    info = inferred("nn.attention", of(n, m, 4, 8), of(n, 7, 4, 8), of(n, 7, 4, 16))

    assert info == tensor((n, m, 4, 16), "float32")


def test_keys_that_do_not_fit_are_refused_at_run_time() -> None:
    query, key = np.zeros((1, 1, 3, 1)), np.zeros((1, 1, 2, 1))

    with pytest.raises(RunError) as refused:
        computed("nn.attention", query, key, key)

    assert str(refused.value).endswith(": the 3 heads of query are no multiple of the 2 of key")
