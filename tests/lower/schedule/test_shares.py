"""Softmax in its cheapest operations, and the functions beside it that keep theirs."""

import numpy as np
import pytest

from relax_egraph.lower.emit.target import Target
from relax_egraph.lower.legalize.norm import log_softmax, softmax
from relax_egraph.lower.schedule import schedule
from relax_egraph.lower.schedule.inline import inline
from relax_egraph.lower.schedule.shares import cheapest_softmax
from relax_egraph.lower.schedule.stages import stages_of
from relax_egraph.tir import te
from relax_egraph.tir.expr import Binary, Intrinsic
from relax_egraph.tir.rewrite import nodes
from relax_egraph.tir.stmt import PrimFunc
from tests.support.kernels import TARGETS, compiled


def operations(function: PrimFunc) -> tuple[set[str], int]:
    """The scalar functions of `function` in its cheapest operations, and its other quotients."""
    stages = inline(stages_of(function) or (), function.outputs, hoist=True)
    values = [n for s in cheapest_softmax(stages) for n in nodes(s.value)]
    quotients = [n for n in values if isinstance(n, Binary) and n.kind == "/"]
    return {n.name for n in values if isinstance(n, Intrinsic)}, sum(
        getattr(q.a, "value", None) != 1.0 for q in quotients
    )


def normalized(
    power_over: tuple[int, ...] = (1, 2), sum_over: tuple[int, ...] = (1, 2), start: str = "max"
) -> PrimFunc:
    """Shares of ``exp(x - top)``, the maximum over some axes and the sum over others."""
    x = te.placeholder((4, 3, 16), name="x")

    def over(axes: tuple[int, ...], reduce: str, y: te.Tensor) -> te.Tensor:
        k = {a: te.reduce_axis(y.shape[a]) for a in axes}
        kept = [a for a in range(3) if a not in k]
        return te.compute(
            tuple(y.shape[a] for a in kept),
            lambda *i: getattr(te, reduce)(
                y[tuple(k[a] if a in k else i[kept.index(a)] for a in range(3))], list(k.values())
            ),
            f"{reduce}_of_{y.name}",
        )

    top = over(power_over, start, x)
    of_top = [a for a in range(3) if a not in power_over]
    e = te.compute(x.shape, lambda *i: te.exp(x[i] - top[tuple(i[a] for a in of_top)]), "e")
    total = over(sum_over, "sum", e)
    of_total = [a for a in range(3) if a not in sum_over]
    share = te.compute(x.shape, lambda *i: e[i] / total[tuple(i[a] for a in of_total)], "share")
    return te.create_prim_func(x, share)


def of_rows(dtype: str) -> PrimFunc:
    x = te.placeholder((5, 33), dtype, "x")
    return te.create_prim_func(x, softmax(x, axis=1))


def test_softmax_takes_powers_of_nonpositive_numbers_and_one_reciprocal() -> None:
    assert operations(of_rows("float32")) == ({"exp_nonpositive"}, 0)
    assert operations(normalized()) == ({"exp_nonpositive"}, 0)


def test_a_sum_over_fewer_terms_than_the_maximum_may_vanish_and_stays_a_divisor() -> None:
    assert operations(normalized(sum_over=(2,))) == ({"exp_nonpositive"}, 1)


def test_the_minimum_keeps_the_exponential_and_the_divisor() -> None:
    assert operations(normalized(start="min")) == ({"exp"}, 1)


def test_a_sum_in_half_precision_stays_a_divisor() -> None:
    assert operations(of_rows("float16"))[1] == 1


def test_logarithms_of_shares_take_the_same_powers() -> None:
    x = te.placeholder((5, 33), name="x")

    names, _ = operations(te.create_prim_func(x, log_softmax(x, axis=1)))

    assert names == {"exp_nonpositive", "log"}


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: str(t.vector_bits))
@pytest.mark.parametrize("columns", [1, 3, 8, 16, 17, 100])
def test_shares_are_those_of_numpy_also_where_there_are_none(columns: int, target: Target) -> None:
    x = te.placeholder((6, columns), name="x")
    kernel = compiled(schedule(te.create_prim_func(x, softmax(x, axis=1))), target)
    data = np.random.default_rng(0).normal(0, 20, (6, columns)).astype(np.float32)
    data[1] = -np.inf
    data[2, columns // 2] = np.nan
    data[3, -1] = np.inf
    data[4] = np.finfo(np.float32).min
    data[5, : columns // 2] = -np.inf
    with np.errstate(invalid="ignore"):
        powers = np.exp(data.astype(np.float64) - data.max(1, keepdims=True))
        expected = powers / powers.sum(1, keepdims=True)

    result = np.empty_like(data)
    kernel(data, result)

    np.testing.assert_allclose(result, expected, rtol=2e-5, atol=1e-40)
