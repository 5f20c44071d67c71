"""Rotary position embedding: numbers, what stays, edges, and what is refused."""

from typing import Any

import numpy as np
import pytest

from relax_egraph.errors import RunError
from relax_egraph.ir import dims
from relax_egraph.ir.expr import Expr
from relax_egraph.ir.struct_info import tensor
from tests.support.applied import both, compiled, computed, f32, inferred, of, refusal
from tests.support.legalized import static

NAME = "nn.rotary_embedding"
n, m = dims.symbol("n"), dims.symbol("m")


def turned(x: Any, cos: Any, sin: Any, interleaved: bool) -> list[Any]:
    """By the reference, and by machine code that knows no extents, and all."""
    operands = tuple(f32(o) for o in (x, cos, sin))
    known = compiled(NAME, *operands, known=static, interleaved=interleaved)
    return [*both(NAME, *operands, interleaved=interleaved), known]


@pytest.mark.parametrize(
    ("cos", "sin", "interleaved", "expected"),
    [
        ([0, 0], [1, 1], False, [-3, -4, 1, 2]),
        ([0, 0], [1, 1], True, [-2, 1, -4, 3]),
        ([1, 0], [0, 1], False, [1, -4, 3, 2]),
        ([1, 0], [0, 1], True, [1, 2, -4, 3]),
        ([1, 2, 3, 4], [5, 6, 7, 8], False, [-14, -20, 16, 32]),
        ([1, 2, 3, 4], [5, 6, 7, 8], True, [-9, 10, -19, 40]),
        ([0], [1], False, [-2, 1, 3, 4]),
        ([0], [1], True, [-2, 1, 3, 4]),
    ],
)
def test_each_pair_is_turned_by_its_angle(
    cos: list[float], sin: list[float], interleaved: bool, expected: list[float]
) -> None:
    for result in turned([1, 2, 3, 4], cos, sin, interleaved):
        np.testing.assert_array_equal(result, f32(expected), strict=True)


def test_of_fewer_pairs_the_other_elements_stay() -> None:
    for result in turned([1, 2, 3, 4, 5, 6, 7], [0, 0], [1, 1], False):
        np.testing.assert_array_equal(result, f32(-3, -4, 1, 2, 5, 6, 7), strict=True)


@pytest.mark.parametrize("interleaved", [False, True])
def test_angles_are_those_of_positions(interleaved: bool) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 3, 5, 8)).astype(np.float32)
    angles = np.outer(np.arange(5), 0.1 ** np.arange(4)).astype(np.float32)
    a, b = (x[..., ::2], x[..., 1::2]) if interleaved else (x[..., :4], x[..., 4:])
    complex_pairs = (a + 1j * b) * np.exp(1j * angles)

    for result in turned(x, np.cos(angles), np.sin(angles), interleaved):
        c, d = (result[..., ::2], result[..., 1::2]) if interleaved else np.split(result, 2, -1)
        np.testing.assert_allclose(c + 1j * d, complex_pairs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (0, 0)])
def test_of_nothing_nothing_is_turned(shape: tuple[int, int]) -> None:
    x, angle = np.ones(shape, np.float32), np.ones(shape[1] // 2, np.float32)

    for result in turned(x, angle, angle, False):
        np.testing.assert_array_equal(result, x, strict=True)


X = of(2, 5, 8)
SAID = 'R.nn.rotary_embedding of R.Tensor((2, 5, 8), "float32"), '

REFUSED: list[tuple[Expr, Expr, str]] = [
    (
        of(5, 4),
        of(5, 8),
        'R.Tensor((5, 4), "float32"), R.Tensor((5, 8), "float32"): '
        "cos has shape (5, 4) and sin (5, 8), need one shape",
    ),
    (
        of(1, 2, 5, 4),
        of(1, 2, 5, 4),
        'R.Tensor((1, 2, 5, 4), "float32"), R.Tensor((1, 2, 5, 4), "float32"): '
        "cos has rank 4, needs at most 3",
    ),
    (
        of(3, 4),
        of(3, 4),
        'R.Tensor((3, 4), "float32"), R.Tensor((3, 4), "float32"): '
        "cos has shape (3, 4), whose axes but the last do not broadcast to those of (2, 5, 8)",
    ),
    (
        of(5, 5),
        of(5, 5),
        'R.Tensor((5, 5), "float32"), R.Tensor((5, 5), "float32"): '
        "cos has 5 values for 8 elements, needs 8, or at most half as many",
    ),
    (
        of(),
        of(),
        'R.Tensor((), "float32"), R.Tensor((), "float32"): cos has rank 0, needs at least 1',
    ),
    (
        of(4, dtype="float64"),
        of(4, dtype="float64"),
        'R.Tensor((4,), "float64"), R.Tensor((4,), "float64"): needs operands of one dtype',
    ),
    (
        of(4, dtype="int32"),
        of(4, dtype="int32"),
        'R.Tensor((4,), "int32"), R.Tensor((4,), "int32"): needs floating-point tensors',
    ),
]


@pytest.mark.parametrize(("cos", "sin", "message"), REFUSED)
def test_ill_typed_angles_are_refused(cos: Expr, sin: Expr, message: str) -> None:
    assert refusal(NAME, X, cos, sin) == SAID + message


def test_elements_that_are_no_pairs_are_refused() -> None:
    assert refusal(NAME, *3 * (of(n, 5),)).endswith(": 5 elements are no pairs")


def test_the_result_is_like_what_is_turned() -> None:
    assert inferred(NAME, of(n, m, 8), of(m, 4), of(m, 4)) == tensor((n, m, 8), "float32")
    assert inferred(NAME, of(n, m), of(n), of(n)) == tensor((n, m), "float32")


@pytest.mark.parametrize("count", [3, 5])
def test_angles_that_do_not_fit_are_refused_at_run_time(count: int) -> None:
    with pytest.raises(RunError) as refused:
        computed(NAME, np.zeros(4), np.zeros(count), np.zeros(count))

    assert str(refused.value).endswith(
        f": cos has {count} values for 4 elements, needs 4, or at most half as many"
    )
