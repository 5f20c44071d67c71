"""Sums of products, determinants, losses, counts of runs and steps of optimizers."""

from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from tests.support.onnx_models import Array
from tests.support.onnx_nodes import TRAINING, check, floats, integers, one_node, refusal, run

EQUATIONS: list[tuple[str, list[tuple[int, ...]]]] = [
    ("ij,jk->ik", [(3, 4), (4, 5)]),
    ("bhqd,bhkd->bhqk", [(2, 3, 4, 5), (2, 3, 6, 5)]),
    ("bqhd,bkhd->bhqk", [(2, 4, 3, 5), (2, 6, 3, 5)]),
    ("abc,cde->abde", [(2, 3, 4), (4, 5, 6)]),
    ("abc,bcd->ad", [(2, 3, 4), (3, 4, 5)]),
    ("i,j->ji", [(3,), (4,)]),
    ("i,i", [(5,), (5,)]),
    ("ij,ij->j", [(3, 4), (3, 4)]),
    ("ij,k->", [(3, 4), (5,)]),
    ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
    ("ij,jk,ik->jk", [(2, 3), (3, 4), (2, 4)]),
    ("ij->ji", [(3, 4)]),
    ("ba", [(3, 4)]),
    ("ijk->j", [(2, 3, 4)]),
    ("ii->i", [(4, 4)]),
    ("...ii->...", [(2, 4, 4)]),
    ("...ij,...jk->...ik", [(2, 1, 3, 4), (5, 4, 6)]),
    ("...ij,...jk", [(2, 3, 4), (2, 4, 6)]),
    ("a...,...b->ab...", [(2, 3), (3, 4)]),
    (" i j , j -> i ", [(3, 4), (4,)]),
    ("->", [()]),
    (",i->i", [(), (4,)]),
]


@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS)
def test_products_along_letters(equation: str, shapes: list[tuple[int, ...]]) -> None:
    operands = [floats(*shape, seed=k) for k, shape in enumerate(shapes)]

    fixed = run("Einsum", *operands, equation=equation, shapes=dict(enumerate(shapes)))
    late = run("Einsum", *operands, equation=equation)

    expected = np.einsum(equation, *operands)
    for result in (fixed, late):
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5, strict=True)


def test_letters_of_one_extent_are_products_of_matrices() -> None:
    operands = [floats(2, 3, 4, 5), floats(2, 3, 6, 5)]
    shapes = {0: ("b", 3, "q", 5), 1: ("b", 3, "k", 5)}

    script = rx.from_onnx(
        one_node("Einsum", operands, equation="bhqd,bhkd->bhqk", shapes=shapes)
    ).script()

    assert "R.matmul(" in script
    assert "R.einsum(" not in script


def test_integers_are_summed_exactly() -> None:
    a, b = integers("int32", 3, 70), integers("int32", 70, 2)

    np.testing.assert_array_equal(run("Einsum", a, b, equation="ij,jk->ik"), a @ b, strict=True)


def test_equations_that_do_not_fit_are_refused() -> None:
    reason = refusal("Einsum", floats(2, 3), equation="ijk->i")

    assert reason == "its equation is 'ijk->i': \"ijk\" does not fit an operand of rank 2"


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_determinants(size: int) -> None:
    x = floats(3, 2, size, size)
    x[0, 0] = 1
    x[0, 1, 0] = 0

    fixed = {0: ("n", 2, size, size)}

    np.testing.assert_allclose(
        run("Det", x, shapes=fixed), np.linalg.det(x), 1e-4, 1e-4, strict=True
    )


def test_a_determinant_needs_rows_that_are_known() -> None:
    needs = "needs a known number from 1 to 16"

    assert (
        refusal("Det", floats(40, 40), shapes={0: (40, 40)})
        == f"its matrices have 40 rows, {needs}"
    )
    assert (
        refusal("Det", floats(2, 3), shapes={0: (2, 3)}) == "its operand is of no square matrices"
    )


# --- losses -----------------------------------------------------------------------------


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ignored", [None, -7, 2])
def test_losses(reduction: str, weighted: bool, ignored: int | None) -> None:
    scores, targets = floats(4, 5, 3), np.array([[0, 1, 2], [3, 4, 0], [2, 2, 1], [4, 0, 1]])
    if ignored is not None:
        targets[0, :2] = ignored
    weights = [np.linspace(0.5, 2, 5, dtype=np.float32)] if weighted else []
    how: dict[str, Any] = {"reduction": reduction}
    if ignored is not None:
        how["ignore_index"] = ignored

    for op, outputs in (
        ("NegativeLogLikelihoodLoss", ("y",)),
        ("SoftmaxCrossEntropyLoss", ("y", "logarithms")),
    ):
        check(op, scores, targets, *weights, outputs=outputs, **how)


# --- counts of runs ---------------------------------------------------------------------

POOL: dict[str, Any] = {
    "ngram_counts": [0, 3],
    "ngram_indexes": [0, 1, 2, 3, 4, 6],
    "pool_int64s": [2, 3, 5, 5, 4, 5, 6, 7, 8],
}


@pytest.mark.parametrize(
    ("shape", "mode", "lengths"),
    [
        ((12,), "TF", (1, 2, 2)),
        ((2, 6), "TF", (2, 2, 3)),
        ((2, 6), "IDF", (1, 1, 0)),
        ((2, 6), "TFIDF", (1, 2, 0)),
        ((0,), "TF", (1, 2, 0)),
    ],
)
def test_runs_are_counted(shape: tuple[int, ...], mode: str, lengths: tuple[int, ...]) -> None:
    numbers = np.array([1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8], np.int32)
    x = numbers[: np.prod(shape)].reshape(shape)
    names = ("min_gram_length", "max_gram_length", "max_skip_count")
    weights = [0.5, 2.0, 3.0, 1.5, 4.0, 1.0, 0.25]
    how: dict[str, Any] = {
        **POOL,
        **dict(zip(names, lengths, strict=True)),
        "mode": mode,
        "weights": weights,
    }

    check("TfIdfVectorizer", x, **how)


# --- optimizers -------------------------------------------------------------------------

STEPS: list[tuple[str, int, dict[str, Any]]] = [
    ("Adagrad", 1, {"norm_coefficient": 0.1, "epsilon": 1e-5, "decay_factor": 0.2}),
    (
        "Adam",
        2,
        {"norm_coefficient": 0.1, "norm_coefficient_post": 0.05, "alpha": 0.9, "beta": 0.99},
    ),
    ("Momentum", 1, {"norm_coefficient": 0.1, "alpha": 0.9, "beta": 0.5, "mode": "standard"}),
    ("Momentum", 1, {"norm_coefficient": 0.1, "alpha": 0.9, "beta": 0.5, "mode": "nesterov"}),
]


@pytest.mark.parametrize(("op", "states", "attrs"), STEPS)
@pytest.mark.parametrize("count", [0, 3])
def test_steps_of_optimizers(op: str, states: int, attrs: dict[str, Any], count: int) -> None:
    rate, done = np.float32(0.1), np.int64(count)
    tensors: list[Array] = []
    for kind in range(2 + states):
        tensors += [np.abs(floats(3, seed=kind)), np.abs(floats(2, 4, seed=kind))]
    outputs = [f"y{k}" for k in range(2 * (1 + states))]
    operands = (np.asarray(rate), np.asarray(done), *tensors)

    check(op, *operands, outputs=outputs, domain=TRAINING, opset=21, **attrs)
