"""Random numbers of ONNX models: the same each time, and of the right distribution."""

from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from tests.support.onnx_models import Array, model, node, value
from tests.support.onnx_nodes import refusal, run

MANY = [200, 300]


def test_the_same_seed_draws_the_same() -> None:
    draws = [run("RandomUniform", shape=[3, 4], seed=s) for s in (1.0, 1.0, 2.0)]

    np.testing.assert_array_equal(draws[0], draws[1])
    assert not (draws[0] == draws[2]).any()


def test_a_model_draws_the_same_each_time_and_each_node_others() -> None:
    nodes = [node("RandomNormalLike", "x", name) for name in ("y", "z")]
    given = model(nodes, [value("x", ["n"])], [value("y", ["n"]), value("z", ["n"])])
    main = rx.VirtualMachine(rx.build(rx.optimize(rx.from_onnx(given))))["main"]

    first, second = (list(main(np.zeros(50, np.float32))) for _ in range(2))
    longer = list(main(np.zeros(70, np.float32)))

    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal([x[:50] for x in longer], first)
    assert not (first[0] == first[1]).any()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_uniform_numbers_fill_the_range(dtype: str) -> None:
    number = {"float16": 10, "float32": 1, "float64": 11}[dtype]

    x = run("RandomUniform", shape=MANY, low=-2.0, high=3.0, seed=5.0, dtype=number)

    assert x.dtype == dtype
    assert (x >= -2).all()
    assert (x <= 3).all()
    assert np.histogram(x, 10, (-2, 3))[0] == pytest.approx(6000, rel=0.07)


def test_normal_numbers_have_their_moments() -> None:
    x: Array = run("RandomNormal", shape=MANY, mean=3.0, scale=2.0, seed=7.0)
    standard = (x - 3) / 2

    assert standard.mean() == pytest.approx(0, abs=0.02)
    assert standard.std() == pytest.approx(1, abs=0.02)
    assert (standard**4).mean() == pytest.approx(3, abs=0.15)
    assert np.corrcoef(x[:, :-1].ravel(), x[:, 1:].ravel())[0, 1] == pytest.approx(0, abs=0.02)


@pytest.mark.parametrize("dtype", [None, 9, 7])
def test_an_event_is_as_likely_as_is_said(dtype: int | None) -> None:
    likely = np.tile(np.array([0, 0.1, 0.5, 1], np.float32), (5000, 1))
    how: dict[str, Any] = {} if dtype is None else {"dtype": dtype}

    hits = run("Bernoulli", likely, **how)

    assert hits.dtype == {None: "float32", 9: "bool", 7: "int64"}[dtype]
    assert hits.mean(0) == pytest.approx([0, 0.1, 0.5, 1], abs=0.02)


def test_classes_are_drawn_as_often_as_they_are_likely() -> None:
    shares = np.array([[0.2, 0.5, 0.3], [0, 0, 1]])
    with np.errstate(divide="ignore"):
        logarithms = np.log(shares).astype(np.float32) + 3

    drawn = run("Multinomial", logarithms, sample_size=4000, seed=3.0)

    assert drawn.dtype == "int32"
    counts = np.stack([np.bincount(row, minlength=3) for row in drawn])
    np.testing.assert_allclose(counts / 4000, shares, atol=0.03)


def test_only_floats_are_drawn() -> None:
    like = np.zeros(3, np.int32)

    assert refusal("RandomUniformLike", like) == "it draws numbers of int32, needs floats"
