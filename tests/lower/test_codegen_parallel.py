"""Parallel loops: the same results however their turns are split, and by whomever they are run."""

import ctypes
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from relax_egraph.ir import dims
from relax_egraph.lower.codegen import loop_cost
from relax_egraph.lower.codegen.parallel_loops import WORTH_SHARING, shared_nests
from relax_egraph.lower.emit.target import host
from relax_egraph.lower.jit import compile_kernels, link, linking, llvm_text
from relax_egraph.lower.runtime.pool_code import RUN, STATE
from relax_egraph.tir.expr import (
    Binary,
    Buffer,
    BufferLoad,
    Imm,
    Intrinsic,
    TirExpr,
    TirVar,
    from_dim,
)
from relax_egraph.tir.interpret import interpret
from relax_egraph.tir.stmt import (
    BlockAxis,
    For,
    IfThenElse,
    LoopKind,
    PrimFunc,
    Stmt,
    Store,
    TensorIntrinsic,
    TirBlock,
    seq,
)
from tests.support.kernels import TARGETS, buffer, loop, m, n, sample

i, j, k, v = TirVar("i"), TirVar("j"), TirVar("k"), TirVar("v")
ZERO = Imm(0, "int64")

Split = Callable[[int], Sequence[tuple[int, int]]]

_RUN_REGION = ctypes.CFUNCTYPE(None, *(ctypes.c_void_p,) * 3, *(ctypes.c_int64,) * 2)
_TASK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


class Splitting:
    """A pool that runs the chunks of a region as a test says, on the thread of the caller."""

    def __init__(self, split: Split) -> None:
        self.turns: list[int] = []

        def run(pool: int, task: int, context: int, turns: int, cost: int) -> None:
            self.turns.append(turns)
            for begin, end in split(turns):
                _TASK(task)(context, begin, end)

        self._run = _RUN_REGION(run)
        self._memory = (ctypes.c_char * STATE)()
        self.address = ctypes.addressof(self._memory)
        code = ctypes.cast(self._run, ctypes.c_void_p).value
        ctypes.c_void_p.from_address(self.address + RUN).value = code


def _sevens_backwards(turns: int) -> Sequence[tuple[int, int]]:
    return [(k, min(k + 7, turns)) for k in reversed(range(0, turns, 7))]


SPLITS: dict[str, Split] = {
    "whole": lambda turns: [(0, turns)],
    "one by one": lambda turns: [(k, k + 1) for k in range(turns)],
    "sevens, backwards": _sevens_backwards,
}


@pytest.fixture
def always_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every loop is shared; kernels of other estimates are not looked for in the cache."""
    monkeypatch.setenv("RELAX_EGRAPH_CACHE", "off")
    monkeypatch.setattr(loop_cost, "OPERATION", 2 * WORTH_SHARING)


def over(var: TirVar, extent: TirExpr | int, body: Stmt, kind: LoopKind = "parallel") -> For:
    return For(var, Imm(extent, "int64") if isinstance(extent, int) else extent, kind, body)


def sums_of_rows(length: int | None = None) -> PrimFunc:
    """Each row is kept in a buffer of its own before it is summed up."""
    columns = n if length is None else length
    x, out = buffer("x", "float32", m, columns), buffer("out", "float32", m)
    row = Buffer("row", (columns,), "float32")
    body = seq(
        loop(j, columns, Store(row, (j,), Intrinsic("exp", (x[i, j],)))),
        Store(out, (i,), Imm(0.0, "float32")),
        loop(j, columns, Store(out, (i,), out[i] + row[j])),
    )
    block = TirBlock("row", (), body, allocs=(row,))
    return PrimFunc((x, out), loop(i, m, block, "parallel"))


def space_of_three_loops() -> PrimFunc:
    x, out = buffer("x", "int64", m, n, 3), buffer("out", "int64", m, n, 3)
    body = Store(out, (i, j, k), x[i, j, k] * 3 + i * 100 + j * 10 + k)
    nest = loop(j, n, loop(k, 3, body, "parallel"), "parallel")
    return PrimFunc((x, out), loop(i, m, nest, "parallel"))


def within_a_serial_loop() -> PrimFunc:
    """Uses the variable of the loop around, the axis of a block, and a buffer that all share."""
    x, out = buffer("x", "int64", m, n), buffer("out", "int64", m, n)
    total = Buffer("total", (n,), "int64")
    body = seq(
        loop(j, n, Store(total, (j,), total[j] + x[v, j]), "parallel"),
        loop(j, n, Store(out, (i, j), total[j] * (v + 1)), "parallel"),
    )
    block = TirBlock("b", (BlockAxis(v, from_dim(m), "spatial", i),), body)
    clear = loop(j, n, Store(total, (j,), ZERO))
    return PrimFunc((x, out), seq(clear, loop(i, m, block, "serial")), allocs=(total,))


def within_a_parallel_loop() -> PrimFunc:
    """The inner loop is no part of a perfect nest: it runs serially, in the task."""
    x, out = buffer("x", "int64", m, n), buffer("out", "int64", m, n + 1)
    inner = loop(j, n, Store(out, (i, j), x[i, j] + j), "parallel")
    body = seq(Store(out, (i, from_dim(n)), ZERO), inner)
    return PrimFunc((x, out), loop(i, m, body, "parallel"))


def behind_a_condition() -> PrimFunc:
    x, out = buffer("x", "float32", m, n), buffer("out", "float32", m, n)
    arms = [loop(j, n, Store(out, (i, j), x[i, j] * factor)) for factor in (2.0, 3.0)]
    then, otherwise = (loop(i, m, arm, "parallel") for arm in arms)
    few = Binary("<", from_dim(m), Imm(6, "int64"))
    return PrimFunc((x, out), IfThenElse(few, then, otherwise))


def copied_by_an_unrolled_loop() -> PrimFunc:
    x, out = buffer("x", "int64", 2, n), buffer("out", "int64", 2, n)
    body = loop(j, n, Store(out, (i, j), x[i, j] + i), "parallel")
    return PrimFunc((x, out), loop(i, 2, body, "unrolled"))


KERNELS: dict[str, Callable[[], PrimFunc]] = {
    "sums of rows": sums_of_rows,
    "sums of short rows": lambda: sums_of_rows(33),
    "a space of three loops": space_of_three_loops,
    "within a serial loop": within_a_serial_loop,
    "within a parallel loop": within_a_parallel_loop,
    "behind a condition": behind_a_condition,
    "copied by an unrolled loop": copied_by_an_unrolled_loop,
}

SHAPES = [(0, 5), (5, 0), (1, 1), (3, 16), (8, 17), (23, 5)]


@pytest.mark.usefixtures("always_worth_it")
@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("name", KERNELS)
def test_splits_do_not_change_results(name: str, split: str) -> None:
    function, pool = KERNELS[name](), Splitting(SPLITS[split])
    compiled = compile_kernels({"f": function})
    serial, shared = link(compiled)["f"], link(compiled, pool.address)["f"]
    for rows, columns in SHAPES:
        sizes = {"m": rows, "n": columns}
        shapes = [tuple(dims.evaluate(d, sizes) for d in b.shape) for b in function.params]
        x = sample(shapes[0], function.params[0].dtype)
        alone, together = (np.full(shapes[1], 7, function.params[1].dtype) for _ in range(2))
        given = [sizes[s] for s in function.symbols]

        serial(x, alone, *given)
        shared(x, together, *given)

        (expected,) = interpret(function, [x], sizes)
        np.testing.assert_array_equal(alone, together)
        np.testing.assert_allclose(alone, expected, rtol=1e-5)
    assert pool.turns


@pytest.mark.usefixtures("always_worth_it")
def test_kernels_that_ctypes_calls_have_the_pool_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linking, "layout_is_known", lambda: False)
    pool, x = Splitting(SPLITS["whole"]), np.zeros((4, 9), np.float32)

    link(compile_kernels({"f": sums_of_rows()}), pool.address)["f"](x, x[:, 0].copy(), 4, 9)

    assert pool.turns == [4]


@pytest.mark.usefixtures("always_worth_it")
@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.cpu + str(t.vector_bits))
def test_every_target_shares_loops(target: object) -> None:
    pool = Splitting(_sevens_backwards)
    kernel = link(compile_kernels({"f": sums_of_rows()}, target), pool.address)["f"]  # pyright: ignore
    x, out = sample((19, 100), "float32"), np.empty(19, np.float32)

    kernel(x, out, 19, 100)

    np.testing.assert_allclose(out, np.exp(x).sum(1), rtol=1e-5)
    assert pool.turns == [19]


def test_rows_too_long_for_the_stack_belong_to_the_task() -> None:
    pool = Splitting(_sevens_backwards)
    kernel = link(compile_kernels({"f": sums_of_rows(20_000)}), pool.address)["f"]
    x, out = sample((20, 20_000), "float32"), np.empty(20, np.float32)

    kernel(x, out, 20)

    np.testing.assert_allclose(out, np.exp(x).sum(1), rtol=1e-5)
    assert pool.turns == [20]


@pytest.mark.usefixtures("always_worth_it")
def test_a_space_of_loops_is_one_region() -> None:
    pool = Splitting(SPLITS["whole"])
    kernel = link(compile_kernels({"f": space_of_three_loops()}), pool.address)["f"]
    x = np.zeros((4, 5, 3), np.int64)

    kernel(x, x.copy(), 4, 5)

    assert pool.turns == [60]


def test_a_short_loop_runs_on_the_thread_of_the_caller() -> None:
    pool = Splitting(SPLITS["whole"])
    kernel = link(compile_kernels({"f": sums_of_rows()}), pool.address)["f"]

    for rows in (0, 1, 10, 10_000):
        kernel(np.zeros((rows, 100), np.float32), np.zeros(rows, np.float32), rows, 100)

    assert pool.turns == [10_000]


def test_a_loop_seen_to_be_short_has_no_task() -> None:
    x, out = buffer("x", "float32", 16, 64), buffer("out", "float32", 16, 64)
    body = loop(j, 64, Store(out, (i, j), x[i, j] * 2.0))
    short = PrimFunc((x, out), loop(i, 16, body, "parallel"))
    serial = PrimFunc((x, out), loop(i, 16, body, "serial"))

    assert llvm_text(short) == llvm_text(serial)


# --- loops that visibly break the promise ------------------------------------------------

x, out = buffer("x", "int64", n), buffer("out", "int64", n)
at = buffer("at", "int64", n)
everywhere = Buffer("everywhere", (4,), "int64")
summed = TirBlock("b", (BlockAxis(v, from_dim(n), "reduce", i),), Store(out, (v,), x[v]))

BROKEN: dict[str, Stmt] = {
    "all turns write one element": Store(out, (ZERO,), x[i]),
    "all turns add to one element": Store(out, (ZERO,), out[ZERO] + x[i]),
    "turns may add to the same elements": Store(out, (at[i],), BufferLoad(out, (at[i],)) + x[i]),
    "turns share scratch": seq(Store(everywhere, (ZERO,), x[i]), Store(out, (i,), everywhere[0])),
    "the loop reduces": summed,
    "a micro-kernel writes one place": TensorIntrinsic("f", ((out, (ZERO,)), (x, (ZERO,))), ()),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_loop_whose_turns_meet_is_not_shared(name: str) -> None:
    assert shared_nests(loop(i, n, BROKEN[name], "parallel"), host()) == {}


def test_of_a_nest_the_loops_that_are_independent_are_shared() -> None:
    a, rows = buffer("a", "int64", m, n), buffer("rows", "int64", m)
    adds = loop(j, n, Store(rows, (i,), rows[i] + a[i, j]), "parallel")
    outer = loop(i, m, adds, "parallel")

    (nest,) = shared_nests(outer, host()).values()

    assert nest.loops == (outer,)


def test_elements_may_be_scattered_where_none_is_read() -> None:
    body = Store(out, (at[i],), x[i])

    assert len(shared_nests(loop(i, n, body, "parallel"), host())) == 1


def test_scratch_of_a_turn_does_not_hinder() -> None:
    body = seq(Store(everywhere, (ZERO,), x[i]), Store(out, (i,), everywhere[0]))
    block = TirBlock("b", (), body, allocs=(everywhere,))

    assert len(shared_nests(loop(i, n, block, "parallel"), host())) == 1


def test_a_reduction_without_turns_still_runs_the_init_of_a_shared_loop() -> None:
    """The block's scratch belongs to a task, its init runs outside of one if there is no turn."""
    a, total = buffer("a", "int64", n, 4), buffer("total", "int64", 4)
    kept = Buffer("kept", (1,), "int64")
    axes = (
        BlockAxis(v, from_dim(n), "reduce", k),
        BlockAxis(TirVar("w"), Imm(4, "int64"), "spatial", j),
    )
    w = axes[1].var
    body = seq(Store(kept, (ZERO,), a[v, w]), Store(total, (w,), total[w] + kept[0]))
    block = TirBlock("b", axes, body, init=Store(total, (w,), ZERO), allocs=(kept,))
    function = PrimFunc((a, total), loop(k, n, loop(j, 4, block, "parallel"), "serial"))
    kernel = link(compile_kernels({"f": function}))["f"]
    result = np.full(4, 7)

    kernel(np.zeros((0, 4), np.int64), result, 0)

    assert result.tolist() == [0, 0, 0, 0]
