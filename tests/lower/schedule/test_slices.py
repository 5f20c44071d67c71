"""Copies to places of their own run contiguous and vectorized; other stores keep their loops."""

import pytest

from relax_egraph.ir.dims import Dim
from relax_egraph.lower.legalize.join import concat, split, stack
from relax_egraph.lower.schedule import schedule
from relax_egraph.tir import te
from relax_egraph.tir.expr import Buffer, Operand, TirVar, as_expr, from_dim
from relax_egraph.tir.stmt import BlockAxis, For, PrimFunc, Store, TirBlock, seq
from tests.support.scheduled import M, N, assert_same_results, loops_of


def matrices(*shapes: tuple[Dim, ...]) -> tuple[te.Tensor, ...]:
    return tuple(te.placeholder(s, name=f"x{k}") for k, s in enumerate(shapes))


def rows() -> PrimFunc:
    return concat(matrices((N, 3), (M, 3), (2, 3)), axis=0)


def columns() -> PrimFunc:
    return concat(matrices((N, M), (N, 20)), axis=1)


def layers() -> PrimFunc:
    return stack(matrices((N, M), (N, M)), axis=1)


def parts() -> PrimFunc:
    """What is read from ``x[i + n, j]`` is in a row, from the middle of `x` on."""
    x = te.placeholder((2 * N, 16), name="x")
    return te.create_prim_func(x, *split(x, indices_or_sections=2, axis=0))


def middles() -> PrimFunc:
    x = te.placeholder((N, 5, 2, 16), name="x")
    return te.create_prim_func(x, *split(x, indices_or_sections=(2,), axis=1))


def narrow() -> PrimFunc:
    return concat(matrices((N, 3), (N, 4)), axis=1)


def stored(place: tuple[Operand, ...], *loops: TirVar) -> PrimFunc:
    """Of two axes of extent 2, what is read at them, stored at `place`."""
    x, out = Buffer("x", (2, 2), "float32"), Buffer("out", (4, 4), "float32")
    axes = tuple(
        BlockAxis(v, from_dim(2), "spatial", loop) for v, loop in zip(V, loops, strict=True)
    )
    block = TirBlock("out", axes, Store(out, tuple(map(as_expr, place)), x[V]))
    zero = TirBlock("zero", (), Store(out, (as_expr(0), as_expr(0)), as_expr(0, "float32")))
    nest = For(loops[0], from_dim(2), "serial", For(loops[1], from_dim(2), "serial", block))
    return PrimFunc((x, out), seq(zero, nest), 1)


ALL = [rows(), columns(), layers(), narrow(), parts(), middles()]
V = (TirVar("v_i"), TirVar("v_j"))
I0, I1 = TirVar("i"), TirVar("j")


@pytest.mark.parametrize(
    ("function", "loops"),
    [
        (
            rows(),
            [
                *[("parallel", "(n * 3 + 16383) // 16384"), ("vectorized", "...")],
                *[("parallel", "(m * 3 + 16383) // 16384"), ("vectorized", "...")],
                *[("serial", "2"), ("serial", "3")],
            ],
        ),
        (
            columns(),
            [("parallel", "n"), ("vectorized", "m"), ("parallel", "n"), ("vectorized", "20")],
        ),
        (layers(), [("parallel", "n"), ("vectorized", "m")] * 2),
        (parts(), [("parallel", "(n * 16 + 16383) // 16384"), ("vectorized", "...")]),
        (
            middles(),
            [("parallel", "n"), ("vectorized", "64"), ("parallel", "n"), ("vectorized", "96")],
        ),
        (narrow(), [("parallel", "n"), ("vectorized", "3"), ("vectorized", "4")]),
        (stored((V[0] + V[1], 0), I0, I1), [("serial", "2"), ("serial", "2")]),
        (stored((V[0], V[0]), I0, I1), [("serial", "2"), ("serial", "2")]),
        (stored((V[1] % 2, V[0]), I0, I1), [("serial", "2"), ("serial", "2")]),
        (stored((V[0], V[1] + (1 - V[1])), I0, I1), [("serial", "2"), ("serial", "2")]),
    ],
)
def test_only_copies_to_distinct_places_are_vectorized(
    function: PrimFunc, loops: list[tuple[str, str]]
) -> None:
    assert loops_of(schedule(function)) == loops


@pytest.mark.parametrize("function", ALL)
@pytest.mark.parametrize(("n", "m"), [(0, 3), (3, 0), (1, 1), (5, 17)])
def test_scheduled_copies_are_the_same_copies(function: PrimFunc, n: int, m: int) -> None:
    assert_same_results(function, n=n, m=m)
