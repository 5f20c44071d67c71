"""Row reductions and the maps around them run together, row by row."""

import numpy as np
import pytest

from relax_egraph.lower.legalize.norm import softmax
from relax_egraph.lower.legalize.reduce import max_, mean, min_, sum_
from relax_egraph.lower.schedule import schedule
from relax_egraph.tir import te
from relax_egraph.tir.inline import inline_injective
from relax_egraph.tir.rewrite import statements
from relax_egraph.tir.stmt import PrimFunc, TirBlock
from tests.support.kernels import compiled
from tests.support.scheduled import M, N, assert_same_results, loops_of

WHOLE = ("vectorized", "m")
BY_BLOCKS = (("serial", "(m + 32767) // 32768"), ("vectorized", "..."))
"""The loops of a pass over a row: at once, or as sums of many terms are added up."""

SIZES = [(0, 3), (1, 1), (2, 7), (7, 16), (3, 17), (2, 65)]


def matrix() -> te.Tensor:
    return te.placeholder((N, M), name="x")


def softmax_rows() -> PrimFunc:
    x = matrix()
    return te.create_prim_func(x, *inline_injective([softmax(x, axis=1)]))


def softmax_of_cube() -> PrimFunc:
    x = te.placeholder((2, N, M), name="x")
    return te.create_prim_func(x, softmax(x, axis=2))


def layer_norm() -> PrimFunc:
    """``(x - mean) / √(var + ε) · g + b``, each operator a tensor of its own."""
    x = matrix()
    g, b = te.placeholder((M,), name="g"), te.placeholder((M,), name="b")
    m = mean(x, axis=(1,), keepdims=True)
    d = te.compute((N, M), lambda i, j: x[i, j] - m[i, 0], "d")
    v = mean(te.compute((N, M), lambda i, j: d[i, j] * d[i, j], "sq"), axis=(1,), keepdims=True)
    r = te.compute((N, 1), lambda i, j: te.rsqrt(v[i, j] + 1e-5), "r")
    out = te.compute((N, M), lambda i, j: d[i, j] * r[i, 0] * g[j] + b[j], "out")
    return te.create_prim_func(x, g, b, out)


def total_of_costly() -> PrimFunc:
    """Row sums of ``eˣ``, and the exponentials' squares: both read one costly row."""
    x = matrix()
    e = te.compute((N, M), lambda i, j: te.exp(x[i, j]), "e")
    s = sum_(e, axis=(1,), keepdims=False)
    out = te.compute((N, M), lambda i, j: e[i, j] * e[i, j] * s[i], "out")
    return te.create_prim_func(x, s, out)


def costly_in_another_type() -> PrimFunc:
    """The costly row is float32 but the result float64: it cannot lend its row."""
    x = matrix()
    e = te.compute((N, M), lambda i, j: te.exp(x[i, j]), "e")
    s = sum_(e, axis=(1,), keepdims=True)
    out = te.compute((N, M), lambda i, j: te.cast(e[i, j] / s[i, 0], "float64"), "out")
    return te.create_prim_func(x, out)


def mean_of_all() -> PrimFunc:
    x = matrix()
    m = mean(x, axis=None, keepdims=False)
    return te.create_prim_func(x, te.compute((N, M), lambda i, j: x[i, j] - m[()], "out"))


def largest_and_least() -> PrimFunc:
    x = matrix()
    return te.create_prim_func(
        x, max_(x, axis=(1,), keepdims=True), min_(x, axis=(1,), keepdims=True)
    )


def sum_of_two_axes() -> PrimFunc:
    x = te.placeholder((N, 3, M), name="x")
    return te.create_prim_func(x, sum_(x, axis=(1, 2), keepdims=False))


def sum_of_outer_axes() -> PrimFunc:
    x = te.placeholder((2, N, M), name="x")
    return te.create_prim_func(x, sum_(x, axis=(0, 2), keepdims=False))


def read_backwards() -> PrimFunc:
    """A costly row is read backwards for one result, and then overwritten by another."""
    x = matrix()
    e = te.compute((N, M), lambda i, j: te.exp(x[i, j]), "e")
    back = te.compute((N, M), lambda i, j: e[i, M - 1 - j] + 1.0, "back")
    out = te.compute((N, M), lambda i, j: e[i, j] * 2.0, "out")
    return te.create_prim_func(x, sum_(e, axis=(1,), keepdims=False), back, out)


def one_row() -> PrimFunc:
    x = te.placeholder((1, M), name="x")
    return te.create_prim_func(x, softmax(x, axis=1))


FUNCTIONS = {
    "softmax": softmax_rows(),
    "softmax of a cube": softmax_of_cube(),
    "layer norm": layer_norm(),
    "total of costly": total_of_costly(),
    "another type": costly_in_another_type(),
    "mean of all": mean_of_all(),
    "largest and least": largest_and_least(),
    "two axes": sum_of_two_axes(),
    "read backwards": read_backwards(),
    "outer axes": sum_of_outer_axes(),
    "one row": one_row(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(("n", "m"), [*SIZES, (3, 0)])
def test_the_schedule_computes_the_same(name: str, n: int, m: int) -> None:
    assert_same_results(FUNCTIONS[name], n=n, m=m)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_anchor_is_rows(name: str) -> None:
    assert schedule(FUNCTIONS[name]).attrs["schedule"] == "rows"


def test_softmax_is_three_passes_over_a_row_of_its_result() -> None:
    scheduled = schedule(softmax_rows())

    assert loops_of(scheduled) == [("parallel", "n"), WHOLE, *BY_BLOCKS, WHOLE]
    assert scheduled.allocs == ()
    blocks = [s for s in statements(scheduled.body) if isinstance(s, TirBlock)]
    assert [(b.name, b.shape, b.scope) for block in blocks for b in block.allocs] == [
        ("softmax_max", (1,), "local"),
        ("softmax_sum", (1,), "local"),
        ("softmax_sum_reciprocal", (1,), "local"),
        ("softmax_sum_part", (1,), "local"),
    ]


def test_the_exponentials_of_a_short_row_stay_in_a_buffer_of_their_own() -> None:
    x = te.placeholder((N, 1024), name="x")

    scheduled = schedule(te.create_prim_func(x, softmax(x, axis=1)))

    row = next(s for s in statements(scheduled.body) if isinstance(s, TirBlock))
    assert [(b.name, b.shape, b.scope) for b in row.allocs] == [
        ("softmax_max", (1,), "local"),
        ("softmax_exp", (1024,), "local"),
        ("softmax_sum", (1,), "local"),
        ("softmax_sum_reciprocal", (1,), "local"),
    ]
    assert scheduled.attrs["streamed"] == (0, 1)


def test_a_cheap_row_is_computed_again_rather_than_stored() -> None:
    scheduled = schedule(layer_norm())

    assert loops_of(scheduled) == [("parallel", "n"), *BY_BLOCKS, *BY_BLOCKS, WHOLE]
    assert scheduled.allocs == ()


def test_a_costly_row_without_a_lender_gets_a_buffer_of_one_row() -> None:
    scheduled = schedule(costly_in_another_type())

    row = next(s for s in statements(scheduled.body) if isinstance(s, TirBlock))
    assert [(b.name, b.shape, b.scope) for b in row.allocs] == [
        ("e", (M,), "global"),
        ("sum", (1,), "local"),
    ]


def test_reduced_axes_that_are_contiguous_collapse() -> None:
    assert loops_of(schedule(sum_of_two_axes())) == [
        ("parallel", "n"),
        ("serial", "(m * 3 + 32767) // 32768"),
        ("vectorized", "..."),
    ]


def test_the_blocks_of_a_single_row_run_in_parallel() -> None:
    blocks = "(m + 32767) // 32768"

    assert loops_of(schedule(one_row())) == [
        *[("parallel", blocks), ("vectorized", "..."), ("vectorized", blocks)] * 2,
        *[("parallel", "(m + 16383) // 16384"), ("vectorized", "...")],
    ]


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("m", [32767, 32768, 32769, 100_003])
def test_long_rows_are_added_up_in_blocks(rows: int, m: int) -> None:
    x = te.placeholder((rows, M), name="x")
    function = te.create_prim_func(x, sum_(x, axis=(1,), keepdims=False))
    data = np.random.default_rng(0).random((rows, m), np.float32)
    actual = np.empty(rows, np.float32)

    compiled(schedule(function))(data, actual, m)

    np.testing.assert_allclose(actual, data.sum(1, np.float64), rtol=2e-7)


def test_reductions_of_one_row_share_a_pass() -> None:
    scheduled = schedule(largest_and_least())

    assert loops_of(scheduled) == [("parallel", "n"), ("vectorized", "m")]
