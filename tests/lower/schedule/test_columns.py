"""Reductions along columns and the maps around them run together, strip by strip."""

import pytest

from relax_egraph.lower.legalize.norm import log_softmax, softmax
from relax_egraph.lower.legalize.reduce import mean, sum_, variance
from relax_egraph.lower.legalize.search import argmax
from relax_egraph.lower.schedule import schedule
from relax_egraph.tir import te
from relax_egraph.tir.rewrite import statements
from relax_egraph.tir.stmt import For, PrimFunc, TirBlock
from tests.support.scheduled import M, N, assert_same_results, loops_of

SIZES = [(0, 3), (3, 0), (1, 1), (2, 7), (7, 64), (17, 65), (9, 130)]

x = te.placeholder((N, M), name="x")
cube = te.placeholder((2, N, M), name="x")
image = te.placeholder((2, N, 3, M), name="x")


def kept_exponentials() -> PrimFunc:
    """The exponentials are a result too: they are written once."""
    e = te.compute((N, M), lambda i, j: te.exp(x[i, j]), "e")
    total = sum_(e, axis=(0,), keepdims=True)
    return te.create_prim_func(x, e, te.compute((N, M), lambda i, j: e[i, j] / total[0, j], "out"))


def in_another_type() -> PrimFunc:
    """The exponentials are used twice, and no result has their type."""
    e = te.compute((N, M), lambda i, j: te.exp(x[i, j]), "e")
    total = sum_(e, axis=(0,), keepdims=False)
    out = te.compute((N, M), lambda i, j: te.cast(e[i, j] * e[i, j] * total[j], "float64"), "out")
    return te.create_prim_func(x, out)


FUNCTIONS = {
    "softmax": te.create_prim_func(x, softmax(x, axis=0)),
    "log_softmax": te.create_prim_func(x, log_softmax(x, axis=0)),
    "softmax in the middle": te.create_prim_func(cube, softmax(cube, axis=1)),
    "softmax of channels": te.create_prim_func(image, softmax(image, axis=1)),
    "variance": te.create_prim_func(x, variance(x, axis=(0,), keepdims=False)),
    "variance of two axes": te.create_prim_func(cube, variance(cube, axis=(0, 1), keepdims=True)),
    "argmax": te.create_prim_func(
        y := te.placeholder((N + 1, M), name="x"), argmax(y, axis=0, keepdims=False)
    ),
    "kept": kept_exponentials(),
    "in another type": in_another_type(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(("n", "m"), SIZES)
def test_the_schedule_computes_the_same(name: str, n: int, m: int) -> None:
    assert_same_results(FUNCTIONS[name], n=n, m=m)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_anchor_is_columns(name: str) -> None:
    assert schedule(FUNCTIONS[name]).attrs["schedule"] == "columns"


def test_what_is_one_number_for_a_column_is_local() -> None:
    blocks = [s for s in statements(schedule(FUNCTIONS["softmax"]).body) if isinstance(s, TirBlock)]

    assert [[(b.name, b.shape, b.scope) for b in block.allocs] for block in blocks] == [
        [
            ("softmax_max", (64,), "local"),
            ("softmax_sum", (64,), "local"),
            ("softmax_sum_reciprocal", (64,), "local"),
        ]
    ]


def test_strips_run_in_parallel_and_their_rows_in_order() -> None:
    y = te.placeholder((100, 1024), name="y")
    scheduled = schedule(te.create_prim_func(y, log_softmax(y, axis=0)))

    assert loops_of(scheduled) == [
        ("parallel", "2"),
        *[("vectorized", "..."), ("serial", "12"), ("vectorized", "..."), ("serial", "4")],
        *[("vectorized", "..."), ("vectorized", "..."), ("serial", "100"), ("vectorized", "...")],
        *[("vectorized", "..."), ("serial", "100"), ("vectorized", "...")],
    ]


def test_a_reduction_alone_is_generic() -> None:
    function = te.create_prim_func(x, mean(x, axis=(0,), keepdims=False))
    alone = te.create_prim_func(x, sum_(x, axis=(0,), keepdims=False))

    assert schedule(function).attrs["schedule"] == "columns"
    assert schedule(alone).attrs["schedule"] == "generic"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_loop_has_a_variable_of_its_own(name: str) -> None:
    body = schedule(FUNCTIONS[name]).body

    used = [s.var for s in statements(body) if isinstance(s, For)]
    assert len(set(used)) == len(used)
