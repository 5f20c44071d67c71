"""Functions that fit no anchor run stage by stage, contiguous where they can."""

import pytest

from relax_egraph.lower.legalize.linear_algebra import matmul
from relax_egraph.lower.legalize.norm import softmax
from relax_egraph.lower.legalize.reduce import sum_
from relax_egraph.lower.schedule import schedule
from relax_egraph.tir import te
from relax_egraph.tir.expr import Buffer, TirVar, from_dim
from relax_egraph.tir.rewrite import statements
from relax_egraph.tir.stmt import BlockAxis, For, PrimFunc, Store, TensorIntrinsic, TirBlock, seq
from tests.support.scheduled import M, N, assert_same_results, loops_of

SIZES = [(0, 3), (3, 0), (1, 1), (2, 7), (7, 16), (5, 17)]


def cube() -> te.Tensor:
    return te.placeholder((2, N, M), name="x")


def sum_over(*axis: int) -> PrimFunc:
    x = cube()
    return te.create_prim_func(x, sum_(x, axis=axis, keepdims=False))


def product_of(dtype: str) -> PrimFunc:
    a, b = te.placeholder((N, 3), dtype, "a"), te.placeholder((3, M), dtype, "b")
    return te.create_prim_func(a, b, matmul(a, b))


def two_products() -> PrimFunc:
    a, b = te.placeholder((N, 16), name="a"), te.placeholder((16, 4), name="b")
    c = te.placeholder((4, 5), name="c")
    hidden = matmul(a, b)
    active = te.compute((N, 4), lambda i, j: te.maximum(hidden[i, j], 0.0), "active")
    return te.create_prim_func(a, b, c, matmul(active, c))


def product_between_softmaxes() -> PrimFunc:
    a, b = te.placeholder((N, 3), name="a"), te.placeholder((3, M), name="b")
    return te.create_prim_func(a, b, softmax(matmul(softmax(a, axis=1), b), axis=1))


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


def counts() -> PrimFunc:
    """How many of a few numbers each element exceeds: the numbers are the same for all."""
    x, few = te.placeholder((N,), name="x"), te.placeholder((5,), name="few")
    k = te.reduce_axis(5)
    value = te.compute((N,), lambda i: te.sum(te.cast(x[i] > few[k], "float32"), k), "counts")
    return te.create_prim_func(x, few, value)


FUNCTIONS = {
    "counts": counts(),
    "axis 0": sum_over(0),
    "axis 1": sum_over(1),
    "float16 product": product_of("float16"),
    "int64 product": product_of("int64"),
    "two products": two_products(),
    "product between softmaxes": product_between_softmaxes(),
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
        ("parallel", "(m * n + 511) // 512"),
        ("vectorized", "..."),
        ("vectorized", "..."),
    ]
    assert loops_of(schedule(sum_over(1))) == [
        ("parallel", "2"),
        ("vectorized", "m"),
        ("serial", "n // 8"),
        ("vectorized", "m"),
        ("serial", "n - (n // 8) * 8"),
        ("vectorized", "m"),
    ]


def test_a_reduction_over_the_few_taps_of_a_window_runs_along_its_positions() -> None:
    x, y = (te.placeholder((n,), "int64", name=f"x{n}") for n in (64, 3))
    tap = te.reduce_axis(3)
    window = te.compute((62,), lambda i: te.sum(x[i + tap] * y[tap], tap), "window")

    scheduled = schedule(te.create_prim_func(x, y, window))

    assert loops_of(scheduled) == [("vectorized", "62"), ("vectorized", "62")]


def test_a_product_of_another_type_runs_along_several_rows() -> None:
    assert loops_of(schedule(product_of("int64"))) == [
        *[("parallel", "n // 4"), ("vectorized", "m")],
        *[("serial", "1"), ("vectorized", "m"), ("serial", "1"), ("vectorized", "m")],
        *[("parallel", "n - (n // 4) * 4"), ("vectorized", "m"), ("vectorized", "m")],
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


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_loop_has_a_variable_of_its_own(name: str) -> None:
    body = schedule(FUNCTIONS[name]).body

    used = [s.var for s in statements(body) if isinstance(s, For)]
    assert len(set(used)) == len(used)
