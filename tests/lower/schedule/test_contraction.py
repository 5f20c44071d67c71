"""Sums of products over several axes run as products, one added to the other."""

import pytest

from relax_egraph.ir.dims import Dim
from relax_egraph.lower.legalize.linear_algebra import einsum
from relax_egraph.lower.schedule import schedule
from relax_egraph.tir import te
from relax_egraph.tir.rewrite import statements
from relax_egraph.tir.stmt import For, PrimFunc, TensorIntrinsic
from tests.support.scheduled import M, N, assert_same_results, loops_of


def contraction(subscripts: str, *shapes: tuple[Dim, ...], relu: bool = False) -> PrimFunc:
    operands = tuple(te.placeholder(s, name=f"x{k}") for k, s in enumerate(shapes))
    out = einsum(operands, subscripts=subscripts)
    if relu:
        summed = out
        out = te.compute(out.shape, lambda *i: te.maximum(summed[i], 0.0), "relu")
    return te.create_prim_func(*operands, out)


CONTRACTIONS = {
    "permuted": contraction("ikl,lkj->ij", (N, 3, 16), (16, 3, 65)),
    "permuted, then relu": contraction("ikl,lkj->ij", (N, 3, 16), (16, 3, 65), relu=True),
    "outer": contraction("bik,bkj->ij", (5, N, 8), (5, 8, 30)),
    "three axes": contraction("ackd,kdbc->ab", (N, 3, 2, 8), (2, 8, 70, 3)),
    "deep": contraction("bik,bkj->ij", (2, N, 600), (2, 600, 3)),
}


@pytest.mark.parametrize("name", CONTRACTIONS)
@pytest.mark.parametrize("n", [0, 1, 7])
def test_a_contraction_computes_the_same(name: str, n: int) -> None:
    assert_same_results(CONTRACTIONS[name], n=n)


@pytest.mark.parametrize("name", CONTRACTIONS)
def test_the_longest_axis_is_the_depth_of_the_products(name: str) -> None:
    scheduled = schedule(CONTRACTIONS[name])

    calls = [s for s in statements(scheduled.body) if isinstance(s, TensorIntrinsic)]
    assert scheduled.attrs["schedule"] == "matmul"
    assert "gemm_tile" in [call.name for call in calls]


def test_the_other_axes_are_loops_around_the_product() -> None:
    scheduled = schedule(contraction("bik,bkj->ij", (5, 6, 8), (5, 8, 64)))

    (call,) = (s for s in statements(scheduled.body) if isinstance(s, TensorIntrinsic))
    assert loops_of(scheduled) == [("serial", "5")]
    assert [str(b.name) for b, _ in call.buffers] == ["x0", "x1", "einsum"]


def test_a_sum_over_an_axis_that_may_be_empty_is_generic() -> None:
    function = contraction("bik,bkj->ij", (N, 6, M), (N, M, 5))

    assert schedule(function).attrs["schedule"] == "generic"
    assert_same_results(function, n=0, m=3)
    assert_same_results(function, n=3, m=17)


@pytest.mark.parametrize("name", CONTRACTIONS)
def test_each_loop_has_a_variable_of_its_own(name: str) -> None:
    body = schedule(CONTRACTIONS[name]).body

    used = [s.var for s in statements(body) if isinstance(s, For)]
    assert len(set(used)) == len(used)
