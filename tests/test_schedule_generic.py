"""Functions that fit no anchor run stage by stage, contiguous where they can."""

import pytest

from relax_egraph.lower.legalize.linear_algebra import matmul
from relax_egraph.lower.legalize.norm import softmax
from relax_egraph.lower.legalize.reduce import mean, sum_
from relax_egraph.lower.schedule import schedule
from relax_egraph.tir import te
from relax_egraph.tir.expr import Buffer, TirVar, from_dim
from relax_egraph.tir.rewrite import statements
from relax_egraph.tir.stmt import BlockAxis, For, PrimFunc, Store, TensorIntrinsic, TirBlock, seq
from tests.scheduled import M, N, assert_same_results, loops_of

SIZES = [(0, 3), (3, 0), (1, 1), (2, 7), (7, 16), (5, 17)]


def cube() -> te.Tensor:
    return te.placeholder((2, N, M), name="x")


def sum_over(*axis: int) -> PrimFunc:
    x = cube()
    return te.create_prim_func(x, sum_(x, axis=axis, keepdims=False))


def softmax_over(axis: int) -> PrimFunc:
    x = cube()
    return te.create_prim_func(x, softmax(x, axis=axis))


def columns_of_sum() -> PrimFunc:
    """Maps before and after a reduction of leading axes."""
    x, y = te.placeholder((N, M), name="x"), te.placeholder((N, M), name="y")
    product = te.compute((N, M), lambda i, j: x[i, j] * y[i, j], "product")
    means = mean(product, axis=(0,), keepdims=True)
    out = te.compute((N, M), lambda i, j: te.exp(x[i, j] - means[0, j]), "out")
    return te.create_prim_func(x, y, out)


def product_of(dtype: str) -> PrimFunc:
    a, b = te.placeholder((N, 3), dtype, "a"), te.placeholder((3, M), dtype, "b")
    return te.create_prim_func(a, b, matmul(a, b))


def two_products() -> PrimFunc:
    a, b = te.placeholder((N, 16), name="a"), te.placeholder((16, 4), name="b")
    c = te.placeholder((4, 5), name="c")
    hidden = matmul(a, b)
    active = te.compute((N, 4), lambda i, j: te.maximum(hidden[i, j], 0.0), "active")
    return te.create_prim_func(a, b, c, matmul(active, c))


def product_and_softmax() -> PrimFunc:
    a, b = te.placeholder((N, 3), name="a"), te.placeholder((3, M), name="b")
    return te.create_prim_func(a, b, softmax(matmul(a, b), axis=1))


def running_sum() -> PrimFunc:
    """``out[i] = x[i] + out[i - 1] / 2``, written by hand: each turn needs the one before."""
    x, out = Buffer("x", (N,), "float32"), Buffer("out", (N + 1,), "float32")
    i, v = TirVar("i"), TirVar("v")
    half = te.const(0.5, "float32")
    block = TirBlock(
        "scan",
        (BlockAxis(v, from_dim(N), "spatial", i),),
        Store(out, (v + 1,), x[v] + out[v] * half),
    )
    begin = Store(out, (from_dim(0),), te.const(0, "float32"))
    return PrimFunc((x, out), seq(begin, For(i, from_dim(N), "serial", block)))


FUNCTIONS = {
    "axis 0": sum_over(0),
    "axis 1": sum_over(1),
    "softmax over axis 0": softmax_over(0),
    "softmax over axis 1": softmax_over(1),
    "columns": columns_of_sum(),
    "float64 product": product_of("float64"),
    "int32 product": product_of("int32"),
    "two products": two_products(),
    "product and softmax": product_and_softmax(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(("n", "m"), SIZES)
def test_the_schedule_computes_the_same(name: str, n: int, m: int) -> None:
    assert_same_results(FUNCTIONS[name], n=n, m=m)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_anchor_is_generic(name: str) -> None:
    assert schedule(FUNCTIONS[name]).attrs["schedule"] == "generic"


def test_a_reduction_of_leading_axes_runs_along_the_last_axis() -> None:
    assert loops_of(schedule(sum_over(0))) == [
        ("parallel", "(m * n + 4095) // 4096"),
        ("vectorized", "..."),
        ("serial", "2"),
        ("vectorized", "..."),
    ]
    assert loops_of(schedule(sum_over(1))) == [
        ("parallel", "2"),
        ("vectorized", "m"),
        ("serial", "n"),
        ("vectorized", "m"),
    ]


def test_a_reduction_over_the_few_taps_of_a_window_runs_along_its_positions() -> None:
    x, tap = te.placeholder((64,), name="x"), te.reduce_axis(3)
    window = te.compute((62,), lambda i: te.max(x[i + tap], tap), "window")

    scheduled = schedule(te.create_prim_func(x, window))

    assert loops_of(scheduled) == [("vectorized", "62"), ("serial", "3"), ("vectorized", "62")]


def test_a_product_of_another_type_runs_along_its_rows() -> None:
    assert loops_of(schedule(product_of("float64"))) == [
        ("parallel", "n"),
        ("vectorized", "m"),
        ("serial", "3"),
        ("vectorized", "m"),
    ]


def test_each_of_two_products_takes_along_what_follows_it() -> None:
    scheduled = schedule(two_products())

    calls = [s for s in statements(scheduled.body) if isinstance(s, TensorIntrinsic)]
    assert [call.buffers[0][0].name for call in calls] == ["a", "active"]
    assert [b.name for b in scheduled.allocs] == ["active"]


def test_loops_of_another_form_stay_as_they_are() -> None:
    function = running_sum()

    scheduled = schedule(function)

    assert scheduled.body == function.body
    assert scheduled.attrs["schedule"] == "generic"
    assert_same_results(function, n=7)
