"""Estimates of how long loops take: not exact, but in proportion."""

import numpy as np

from relax_egraph.lower.codegen.loop_cost import INTRINSIC_COSTS, picoseconds
from relax_egraph.lower.emit.target import host
from relax_egraph.lower.intrinsics import INTRINSICS
from relax_egraph.tir.expr import Binary, Buffer, Imm, TirExpr, TirVar, from_dim
from relax_egraph.tir.interpret import interpret
from relax_egraph.tir.stmt import (
    For,
    IfThenElse,
    PrimFunc,
    Stmt,
    Store,
    TensorIntrinsic,
)
from tests.support.kernels import buffer, loop, m, n

i, j = TirVar("i"), TirVar("j")
ZERO = Imm(0, "int64")
x, out, at = (buffer(name, "int64", n) for name in ("x", "out", "at"))
STORE = Store(out, (j,), x[j] * 3)


def serial(var: TirVar, extent: TirExpr, body: Stmt) -> For:
    return For(var, extent, "serial", body)


def cost(body: Stmt, **symbols: int) -> int:
    """The estimate of `body` for these sizes."""
    result = Buffer("result", (1,), "int64")
    sized = [Buffer(f"of_{name}", tuple([s]), "int64") for name, s in (("n", n), ("m", m))]
    estimate = picoseconds(body, host(), {})
    function = PrimFunc((*sized, result), Store(result, (ZERO,), estimate))
    arrays = [np.zeros(symbols.get(name, 1), np.int64) for name in ("n", "m")]
    return int(interpret(function, arrays)[0][0])


def test_estimates_grow_with_the_extents() -> None:
    body = loop(i, m, loop(j, n, STORE, "serial"), "serial")

    assert cost(body, m=6, n=50) == 300 * cost(STORE)


def test_vectors_are_faster_than_scalars() -> None:
    scalar, vector = loop(j, n, STORE, "serial"), loop(j, n, STORE, "vectorized")

    assert cost(vector, n=64) < cost(scalar, n=64) / 4


def test_of_a_loop_that_depends_on_another_a_turn_in_the_middle_counts() -> None:
    tail = serial(j, Binary("min", Imm(6, "int64"), from_dim(n) - i * 6), STORE)
    triangle = serial(j, i, STORE)

    assert cost(loop(i, 10, tail, "serial"), n=60) == 60 * cost(STORE)
    assert cost(loop(i, 10, triangle, "serial")) == 50 * cost(STORE)


def test_what_memory_decides_counts_as_one_turn() -> None:
    assert cost(serial(j, at[0], STORE)) == cost(STORE)


def test_the_longer_of_two_branches_counts() -> None:
    long, short = (loop(j, turns, STORE, "serial") for turns in (100, 2))
    few = Binary("<", from_dim(n), Imm(6, "int64"))

    assert cost(IfThenElse(few, short, long)) == cost(long) == 100 * cost(STORE)


def test_a_tile_costs_its_multiplications() -> None:
    def tile(*size: int) -> TensorIntrinsic:
        scalars = (0, 0, 0, 0, 0, *size, 0, 0)
        return TensorIntrinsic("gemm_tile", (), tuple(Imm(s, "int64") for s in scalars))

    assert cost(tile(6, 64, 1000)) == 10 * cost(tile(6, 64, 100)) > 0
    assert cost(tile(96, 64, 100)) > 8 * cost(tile(6, 64, 100))


def test_every_micro_kernel_has_a_cost() -> None:
    assert INTRINSIC_COSTS.keys() == INTRINSICS.keys()
