"""Attention and rotary embedding of ONNX, against its evaluator, with sizes of run time."""

from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from tests.support.onnx_nodes import check, floats, one_node, reference, refusal, run

B, HEADS, QUERIES, KEYS, SIZE = 2, 4, 5, 7, 8

Q, K, V = (floats(B, HEADS, n, SIZE, seed=k) for k, n in enumerate((QUERIES, KEYS, KEYS)))
SHAPES = {
    0: ("b", HEADS, "q", SIZE),
    1: ("b", "g", "k", SIZE),
    2: ("b", "g", "k", SIZE),
}
"""Batch, groups and lengths are known when it runs."""


def ours(*operands: Any, **how: Any) -> str:
    return rx.from_onnx(one_node("Attention", operands, shapes=SHAPES, **how)).script()


def test_queries_see_all_keys() -> None:
    check("Attention", Q, K, V, shapes=SHAPES)
    assert "R.nn.attention(" in ours(Q, K, V)


def test_groups_of_heads_share_keys() -> None:
    fixed = {k: (B, h, n, SIZE) for k, (h, n) in enumerate([(4, "q"), (2, "k"), (2, "k")])}

    check("Attention", Q, K[:, :2], V[:, :2], scale=0.3, shapes=fixed)
    check("Attention", Q, K[:, :2], V[:, :2], softcap=1.5, shapes=fixed)


def test_three_axes_are_cut_into_heads() -> None:
    q, k, v = floats(B, QUERIES, 4 * SIZE), floats(B, KEYS, 2 * SIZE), floats(B, KEYS, 2 * 3)
    shapes = {0: ("b", "q", 4 * SIZE), 1: ("b", "k", 2 * SIZE), 2: ("b", "k", 6)}
    heads = {"q_num_heads": 4, "kv_num_heads": 2}

    check("Attention", q, k, v, shapes=shapes, **heads)
    check("Attention", q, k, v, shapes=shapes, is_causal=1, softcap=2.0, **heads)


MASKS = {
    "of truth values": floats(QUERIES, KEYS) > 0,
    "of numbers": floats(B, 1, QUERIES, KEYS),
    "of each head": floats(HEADS, QUERIES, KEYS) > -1,
    "shorter than the keys": floats(QUERIES, KEYS - 2) > -1,
    "that hides all keys of a query": np.arange(QUERIES)[:, None] > np.zeros(KEYS),
}


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("mask", MASKS)
def test_masks_hide_keys(mask: str, causal: int) -> None:
    shape = [1 if n == 1 else f"m{k}" for k, n in enumerate(MASKS[mask].shape)]

    check("Attention", Q, K, V, MASKS[mask], is_causal=causal, shapes={**SHAPES, 3: shape})


@pytest.mark.parametrize(("left", "right"), [(2, -1), (-1, 1), (0, 0), (1, 2)])
@pytest.mark.parametrize("causal", [0, 1])
def test_windows_hide_keys(left: int, right: int, causal: int) -> None:
    sizes = {"left_window_size": left, "right_window_size": right}

    check("Attention", Q, K, V, is_causal=causal, **sizes)
    check("Attention", K, Q, Q, is_causal=causal, **sizes)


@pytest.mark.parametrize("left", [-1, 2])
def test_past_keys_come_before_new_ones(left: int) -> None:
    past = floats(B, HEADS, 3, SIZE, seed=9)
    names = ("y", "present_key", "present_value")
    shapes = {0: SHAPES[0], **{k: ("b", HEADS, "q", SIZE) for k in (1, 2)}}
    shapes |= {k: ("b", HEADS, "past", SIZE) for k in (4, 5)}
    how: dict[str, Any] = {"is_causal": 1, "left_window_size": left, "outputs": names}

    check("Attention", Q, Q, Q, None, past, past + 1, shapes=shapes, **how)
    script = rx.from_onnx(
        one_node("Attention", (Q, Q, Q, None, past, past), shapes=shapes, **how)
    ).script()
    assert 'causal_mask="BottomRight"' in script
    check("Attention", Q, K, V, None, past, past + 1, **how)


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_scores_are_given_as_they_are_in_between(mode: int) -> None:
    names = ("y", "", "", "scores")
    mask = floats(QUERIES, KEYS, seed=3) > 0
    mask[0] = False

    check("Attention", Q, K, V, mask, outputs=names, qk_matmul_output_mode=mode)
    if mode:
        check("Attention", Q, K, V, mask, outputs=names, qk_matmul_output_mode=mode, softcap=1.0)


@pytest.mark.parametrize("causal", [0, 1])
def test_each_sample_has_so_many_keys(causal: int) -> None:
    valid = np.array([7, 3], np.int64)

    check("Attention", Q, K, V, None, None, None, valid, is_causal=causal)


def test_the_softmax_may_be_more_precise() -> None:
    half = [x.astype(np.float16) for x in (Q, K, V)]

    for precision in (1, 10, 11):
        check("Attention", *half, softmax_precision=precision, rtol=4e-3, atol=2e-3)


@pytest.mark.parametrize(
    ("operands", "attrs", "reason"),
    [
        ((Q, K, V, None, K), {}, "of past_key and past_value it has only one"),
        (
            (Q, K, V),
            {"qk_matmul_output_mode": 4, "outputs": ("y", "", "", "s")},
            "its qk_matmul_output_mode is 4, needs 0 to 3",
        ),
        ((Q, K, V), {"left_window_size": -2}, "its window sizes are [-2, -1], need -1 or more"),
        ((Q[0], K[0], V[0]), {}, "it has no attribute 'q_num_heads'"),
    ],
)
def test_what_is_not_defined_is_refused(
    operands: tuple[Any, ...], attrs: dict[str, Any], reason: str
) -> None:
    assert refusal("Attention", *operands, **attrs) == reason


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("part", [SIZE, 4])
def test_positions_turn_pairs(interleaved: int, part: int) -> None:
    angle = floats(20, part // 2)
    cos, sin, places = np.cos(angle), np.sin(angle), np.array([[3, 0, 19, 4, 4]] * B)
    how = {"interleaved": interleaved, "rotary_embedding_dim": 0 if part == SIZE else part}
    shapes = {0: ("b", HEADS, "s", SIZE), 1: ("m", part // 2), 2: ("m", part // 2)}

    check("RotaryEmbedding", Q, cos, sin, places, shapes=shapes, **how)
    check("RotaryEmbedding", Q, cos[places], sin[places], **how)
    flat = np.ascontiguousarray(Q.transpose(0, 2, 1, 3)).reshape(B, QUERIES, -1)
    check("RotaryEmbedding", flat, cos, sin, places, num_heads=HEADS, **how)


def test_angles_must_be_for_all_pairs() -> None:
    cos = floats(20, 3)

    assert (
        refusal(
            "RotaryEmbedding",
            Q,
            cos,
            cos,
            np.zeros((B, QUERIES), int),
            shapes={0: Q.shape, 1: (20, 3)},
        )
        == "3 angles are not for 8 elements"
    )


def test_numbers_of_the_reference_are_of_the_layout_we_think() -> None:
    flat = np.ascontiguousarray(Q.transpose(0, 2, 1, 3)).reshape(B, QUERIES, -1)
    heads = {"q_num_heads": HEADS, "kv_num_heads": HEADS}

    by_head = reference("Attention", Q, Q, Q)

    np.testing.assert_allclose(
        run("Attention", flat, flat, flat, **heads),
        by_head.transpose(0, 2, 1, 3).reshape(flat.shape),
        rtol=1e-5,
        atol=1e-6,
    )
