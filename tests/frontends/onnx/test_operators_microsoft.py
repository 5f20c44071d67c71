"""Operators of other domains than ONNX's, and in its own, that no schema describes."""

import math
from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from tests.support.onnx_models import Array
from tests.support.onnx_nodes import floats, one_node, reference, refusal, run

MICROSOFT = "com.microsoft"

X, BIAS, SKIP, SCALE = (
    floats(2, 3, 8),
    floats(8, seed=1),
    floats(2, 3, 8, seed=2),
    floats(8, seed=3),
)


def gelu(x: Array) -> Array:
    return x / 2 * (1 + np.vectorize(math.erf)(x / np.sqrt(2)))


def gelu_tanh(x: Array) -> Array:
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def rms_norm(x: Array) -> Array:
    return x / np.sqrt(np.mean(x**2, -1, keepdims=True) + 1e-5) * SCALE


def layer_norm(x: Array) -> Array:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * SCALE


CASES: list[tuple[str, tuple[Array, ...], dict[str, Any], Array]] = [
    ("Gelu", (X,), {}, gelu(X)),
    ("BiasGelu", (X, BIAS), {}, gelu(X + BIAS)),
    ("FastGelu", (X,), {}, gelu_tanh(X)),
    ("FastGelu", (X, BIAS), {}, gelu_tanh(X + BIAS)),
    ("QuickGelu", (X,), {}, X / (1 + np.exp(-1.702 * X))),
    ("QuickGelu", (X,), {"alpha": 1.0}, X / (1 + np.exp(-X))),
    ("FusedMatMul", (X, SKIP), {"transB": 1, "alpha": 0.5}, X @ SKIP.swapaxes(1, 2) / 2),
    ("FusedMatMul", (X, SKIP), {"transA": 1}, X.swapaxes(1, 2) @ SKIP),
    ("SimplifiedLayerNormalization", (X, SCALE), {}, rms_norm(X)),
]


@pytest.mark.parametrize(("op", "operands", "attrs", "expected"), CASES)
def test_what_an_optimizer_of_transformers_leaves(
    op: str, operands: tuple[Array, ...], attrs: dict[str, Any], expected: Array
) -> None:
    result = run(op, *operands, domain=MICROSOFT, **attrs)

    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def test_a_norm_in_the_domain_of_onnx() -> None:
    result, inverse = run("SimplifiedLayerNormalization", X, SCALE, outputs=("y", "inverse"))

    np.testing.assert_allclose(result, rms_norm(X), rtol=1e-5, atol=1e-6)
    expected = 1 / np.sqrt(np.mean(X**2, -1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(inverse, expected, rtol=1e-5)


def test_norms_of_sums_give_the_sums_too() -> None:
    how: dict[str, Any] = {"domain": MICROSOFT, "outputs": ("y", "", "", "sum"), "epsilon": 1e-5}

    plain, added = run("SkipLayerNormalization", X, SKIP, SCALE, BIAS, BIAS, **how)
    rms, sums = run("SkipSimplifiedLayerNormalization", X, SKIP, SCALE, **how)

    whole = X + SKIP + BIAS
    np.testing.assert_allclose(added, whole, rtol=1e-6)
    np.testing.assert_allclose(plain, layer_norm(whole) + BIAS, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(sums, X + SKIP, rtol=1e-6)
    np.testing.assert_allclose(rms, rms_norm(X + SKIP), rtol=1e-4, atol=1e-5)


# --- attention --------------------------------------------------------------------------

BATCH, HEADS, QUERIES, KEYS, SIZE = 2, 2, 3, 5, 4
WIDTH = HEADS * SIZE

Q, K, V = (floats(BATCH, n, WIDTH, seed=k) for k, n in enumerate((QUERIES, KEYS, KEYS)))


def attended(op_operands: tuple[Array | None, ...], **how: Any) -> Any:
    shapes = {k: ("b", f"n{k}", WIDTH) for k in range(3)}
    how = {"domain": MICROSOFT, "num_heads": HEADS, "shapes": shapes, **how}
    return run("MultiHeadAttention", *op_operands, **how)


def expected(q: Array, k: Array, v: Array, mask: Array | None = None, **attrs: Any) -> Array:
    heads = {"q_num_heads": HEADS, "kv_num_heads": HEADS}
    return reference("Attention", q, k, v, mask, **heads, **attrs)


def test_heads_lie_side_by_side() -> None:
    bias = floats(3 * WIDTH)
    parts = np.split(bias, 3)

    np.testing.assert_allclose(attended((Q, K, V)), expected(Q, K, V), 1e-4, 1e-5)
    with_bias = expected(*(x + part for x, part in zip((Q, K, V), parts, strict=True)))
    np.testing.assert_allclose(attended((Q, K, V, bias)), with_bias, 1e-4, 1e-5)


def test_keys_are_padded() -> None:
    kept = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    scores = floats(1, HEADS, QUERIES, KEYS)

    padded = np.where(kept, 0, -10000).astype(np.float32)[:, None, None]

    result = attended((Q, K, V, None, kept))
    np.testing.assert_allclose(result, expected(Q, K, V, padded), 1e-4, 1e-5)
    result = attended((Q, K, V, None, kept, scores), scale=0.2)
    np.testing.assert_allclose(result, expected(Q, K, V, padded + scores, scale=0.2), 1e-4, 1e-5)


def test_past_keys_come_before_new_ones() -> None:
    past = floats(BATCH, HEADS, 4, SIZE)
    shapes = {k: ("b", "n", WIDTH) for k in range(3)}
    shapes |= {k: ("b", HEADS, "p", SIZE) for k in (6, 7)}
    how: dict[str, Any] = {"outputs": ("y", "keys", "values"), "unidirectional": 1}

    y, keys, values = attended((K, K, V, None, None, None, past, past + 1), shapes=shapes, **how)

    def by_head(x: Array) -> Array:
        return x.reshape(BATCH, -1, HEADS, SIZE).swapaxes(1, 2)

    np.testing.assert_array_equal(keys, np.concatenate([past, by_head(K)], 2))
    np.testing.assert_array_equal(values, np.concatenate([past + 1, by_head(V)], 2))
    query = by_head(K)
    seen = np.arange(9) <= np.arange(4, 9)[:, None]
    out = reference("Attention", query, keys, values, seen)
    np.testing.assert_allclose(y, out.swapaxes(1, 2).reshape(y.shape), 1e-4, 1e-5)


def test_heads_may_be_packed() -> None:
    packed = np.stack([x.reshape(BATCH, KEYS, HEADS, SIZE) for x in (K, K, V)], axis=3)
    shapes = {0: ("b", "n", HEADS, 3, SIZE)}

    np.testing.assert_allclose(attended((packed,), shapes=shapes), expected(K, K, V), 1e-4, 1e-5)


# --- what is refused --------------------------------------------------------------------


def test_an_operator_that_nobody_knows_is_refused() -> None:
    assert (
        refusal("Nothing", X, domain=MICROSOFT)
        == "opset 1 of com.microsoft has no operator Nothing"
    )
    assert refusal("Gelu", X, X, domain=MICROSOFT) == "it has 2 operands, takes 1 to 1"


def test_an_attribute_without_default_must_be_there() -> None:
    reason = refusal("MultiHeadAttention", Q, K, V, domain=MICROSOFT)

    assert reason == "it has no attribute 'num_heads'"


def test_attention_is_the_one_operator() -> None:
    shapes = {k: ("b", f"n{k}", WIDTH) for k in range(3)}
    how: dict[str, Any] = {"domain": MICROSOFT, "num_heads": HEADS, "shapes": shapes}

    script = rx.from_onnx(one_node("MultiHeadAttention", (Q, K, V), **how)).script()

    assert "R.nn.attention(" in script
    assert "permute_dims" not in script.split("R.nn.attention(")[1]
