"""Random loop functions of maps, movements, reductions and products read back: same numbers."""

from collections.abc import Callable

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.raising.function import Reason, read
from relax_egraph.tir import te
from relax_egraph.tir.expr import TirExpr, TirVar, from_dim
from relax_egraph.tir.inline import inline_injective
from relax_egraph.tir.interpret import interpret
from relax_egraph.tir.tensor import Reduction
from tests.support.raised import run

n, m = dims.symbol("n"), dims.symbol("m")

UNARY: list[Callable[[TirExpr], TirExpr]] = [
    te.tanh,
    te.abs,
    te.sigmoid,
    lambda x: x * x,
    lambda x: te.maximum(x, 0),
    lambda x: te.cast(te.cast(x, "int32"), "float32"),
    lambda x: te.select(x > 0, x, x * 0.5),
]
BINARY: list[Callable[[TirExpr, TirExpr], TirExpr]] = [
    lambda x, y: x + y,
    lambda x, y: x - y,
    lambda x, y: x * y,
    te.minimum,
    lambda x, y: te.select(x < y, x, y),
]


def mapped(draw: st.DrawFn, known: list[te.Tensor]) -> te.Tensor:
    """A function of one tensor, or of two, the second of which is broadcast."""
    x = draw(st.sampled_from(known))
    if draw(st.booleans()):
        f = draw(st.sampled_from(UNARY))
        return te.compute(x.shape, lambda *i: f(x[i]), "map")
    fitting = [t for t in known if t.shape == x.shape[len(x.shape) - len(t.shape) :]]
    y, g = draw(st.sampled_from(fitting)), draw(st.sampled_from(BINARY))
    skipped = len(x.shape) - len(y.shape)
    return te.compute(x.shape, lambda *i: g(x[i], y[i[skipped:]]), "both")


def transposed(draw: st.DrawFn, known: list[te.Tensor]) -> te.Tensor:
    x = draw(st.sampled_from(known))
    order = draw(st.permutations(range(len(x.shape))))

    def value(*i: TirVar) -> TirExpr:
        return x[tuple(i[order.index(k)] for k in range(len(order)))]

    return te.compute([x.shape[k] for k in order], value, "transposed")


def cut(draw: st.DrawFn, known: list[te.Tensor]) -> te.Tensor:
    """A part of a tensor along its first axis, perhaps reversed."""
    x = draw(st.sampled_from(known))
    extent = x.shape[0]
    if not isinstance(extent, int) or extent < 3 or draw(st.booleans()):
        last = from_dim(dims.sub(extent, 1))
        return te.compute(x.shape, lambda *i: x[(last - i[0], *i[1:])], "flipped")
    step = draw(st.integers(1, 2))
    count = (extent - 1) // step
    return te.compute((count, *x.shape[1:]), lambda *i: x[(i[0] * step + 1, *i[1:])], "cut")


def joined(draw: st.DrawFn, known: list[te.Tensor]) -> te.Tensor:
    """Two tensors that differ in their first extent, one behind the other."""
    x = draw(st.sampled_from(known))
    y = draw(st.sampled_from([t for t in known if t.shape[1:] == x.shape[1:]]))
    begin = from_dim(x.shape[0])

    def value(i: TirVar, *r: TirVar) -> TirExpr:
        return te.if_then_else(i < begin, x[(i, *r)], y[(i - begin, *r)])

    return te.compute((dims.add(x.shape[0], y.shape[0]), *x.shape[1:]), value, "joined")


def flattened(draw: st.DrawFn, known: list[te.Tensor]) -> te.Tensor:
    x = draw(st.sampled_from([t for t in known if len(t.shape) == 2]))
    columns = from_dim(x.shape[1])
    return te.compute((dims.product(x.shape),), lambda i: x[i // columns, i % columns], "flat")


def reduced(draw: st.DrawFn, known: list[te.Tensor]) -> te.Tensor:
    x = draw(st.sampled_from([t for t in known if len(t.shape) == 2]))
    combine, place = draw(st.sampled_from([te.sum, te.max, te.min])), draw(st.integers(0, 1))
    k = te.reduce_axis(x.shape[place])

    def value(i: TirVar) -> Reduction:
        return combine(x[(k, i) if place == 0 else (i, k)], k)

    return te.compute((x.shape[1 - place],), value, "reduced")


def multiplied(draw: st.DrawFn, known: list[te.Tensor]) -> te.Tensor:
    x = draw(st.sampled_from([t for t in known if len(t.shape) == 2]))
    y = draw(st.sampled_from([t for t in known if len(t.shape) == 2 and t.shape[1] == x.shape[1]]))
    k = te.reduce_axis(x.shape[1])
    return te.compute(
        (x.shape[0], y.shape[0]), lambda i, j: te.sum(x[i, k] * y[j, k], k), "multiplied"
    )


STEPS = [mapped, mapped, transposed, cut, joined, flattened, reduced, multiplied]


@st.composite
def programs(draw: st.DrawFn) -> tuple[list[te.Tensor], te.Tensor]:
    """The parameters and the result of a program of a few tensors."""
    rows: Dim = draw(st.sampled_from([n, 4]))
    params = [
        te.placeholder((rows, m), "float32", "x"),
        te.placeholder((rows, m), "float32", "y"),
        te.placeholder((m,), "float32", "b"),
    ]
    known = list(params)
    for _ in range(draw(st.integers(1, 5))):
        known.append(draw(st.sampled_from(STEPS))(draw, known))
    return params, known[-1]


@settings(deadline=None, max_examples=60)
@given(programs(), st.booleans(), st.integers(1, 3), st.integers(1, 5), st.integers(0, 99))
def test_what_is_read_computes_the_same(
    program: tuple[list[te.Tensor], te.Tensor], inlined: bool, rows: int, columns: int, seed: int
) -> None:
    params, result = program
    (result,) = inline_injective([result]) if inlined else [result]
    loops = te.create_prim_func(*params, result)
    sizes = {"n": rows, "m": columns}
    random = np.random.default_rng(seed)
    arrays = [
        random.standard_normal([dims.evaluate(d, sizes) for d in p.shape], np.float32)
        for p in params
    ]
    expected = interpret(loops, arrays, {s: sizes[s] for s in loops.scalars})

    operators = read(loops)

    if isinstance(operators, Reason):
        assert inlined, operators  # movements that are composed into one index may not read
        return
    out = run(loops, operators, [*arrays, *expected], [sizes[s] for s in loops.scalars])
    np.testing.assert_allclose(out[0], expected[0], rtol=1e-4, atol=1e-4)
