"""What calls of native functions allocate, from one thread and from several."""

import gc
import sys
import tracemalloc
import weakref
from threading import Thread

import numpy as np
import pytest

from relax_egraph import VirtualMachine, build, parse
from relax_egraph.lower.runtime.driver_link import memory_of
from tests.support.native import MODULE, W, machines, main_of, x_of

CHAIN = """
@I.ir_module
class Module:
    @R.function
    def main(
        x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 4), "float32"), k: R.Tensor((), "int64")
    ) -> R.Tensor(("n", 4), "float32"):
        y = R.matmul(x, w)
        z = R.matmul(y, w)
        u = R.matmul(z, w)
        return u
"""

BRANCH = """
@I.ir_module
class Module:
    @R.function
    def main(
        x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 4), "float32"), k: R.Tensor((), "int64")
    ) -> R.Tensor(("n", 4), "float32"):
        c = R.less(k, R.const(3, "int64"))
        if c:
            y = R.matmul(x, w)
            u = R.matmul(y, w)
        else:
            u = R.matmul(x, w)
        return u
"""

LOOP = """
@I.ir_module
class Module:
    @R.function(private=True)
    def loop(
        x: R.Tensor(("n", 4), "float32"),
        y: R.Tensor(("m", 4), "float32"),
        k: R.Tensor((), "int64"),
    ) -> R.Tensor(dtype="float32", ndim=2):
        cls = Module
        c = R.less(R.const(0, "int64"), k)
        if c:
            z = R.concat((y, x), axis=0)
            r = cls.loop(x, z, R.subtract(k, R.const(1, "int64")))
        else:
            r = y
        return r

    @R.function
    def main(
        x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 4), "float32"), k: R.Tensor((), "int64")
    ) -> R.Tensor(dtype="float32", ndim=2):
        cls = Module
        y = R.matmul(x, w)
        return cls.loop(x, y, k)
"""
"""The matrix `y` gets `k` times the rows of `x`."""

SQUARE = np.eye(4, dtype=np.float32) + 1
TURNS = np.array(9, np.int64)


@pytest.mark.parametrize("module", [CHAIN, BRANCH, LOOP], ids=["chain", "branch", "loop"])
def test_a_call_allocates_only_what_it_returns(module: str) -> None:
    main = main_of(module)
    x = x_of(7)
    main(x, SQUARE, TURNS)
    gc.collect()

    before = sys.getallocatedblocks(), memory_of(main)
    for _ in range(1000):
        main(x, SQUARE, TURNS)
    after = sys.getallocatedblocks(), memory_of(main)

    assert after[0] - before[0] < 10
    assert after[1] == before[1]
    assert after[1][0] == 1


@pytest.mark.parametrize("module", [CHAIN, BRANCH, LOOP], ids=["chain", "branch", "loop"])
def test_nothing_is_allocated_for_a_while(module: str) -> None:
    main = main_of(module)
    x = x_of(7)
    for _ in range(3):
        main(x, SQUARE, TURNS)

    tracemalloc.start()
    held = main(x, SQUARE, TURNS)
    left, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert held.shape == ((70, 4) if module is LOOP else (7, 4))
    assert peak == left


def test_an_arena_is_as_large_as_the_largest_call_needed() -> None:
    main = main_of(CHAIN)
    sizes: list[tuple[int, int]] = []

    for rows in (0, 1, 100, 3, 0):
        main(x_of(rows), SQUARE, TURNS)
        sizes.append(memory_of(main))

    assert sizes[0] < sizes[1] < sizes[2] == sizes[3] == sizes[4]
    assert sizes[2][1] <= 2 * 100 * 16 + 2 * 64


def test_a_loop_has_two_arenas_however_often_it_turns() -> None:
    main = main_of(LOOP)
    sizes: list[tuple[int, int]] = []

    for turns in (3, 300, 5):
        result = main(x_of(2), SQUARE, np.array(turns, np.int64))
        assert result.shape == (2 + 2 * turns, 4)
        sizes.append(memory_of(main))

    assert sizes[1] == sizes[2]
    assert 2 * 300 * 32 <= sizes[1][1] <= 3.2 * 300 * 32


def test_a_machine_that_is_dropped_gives_its_memory_back() -> None:
    exe = build(parse(MODULE))

    def use() -> "weakref.ref[VirtualMachine]":
        vm = VirtualMachine(exe)
        vm["main"](x_of(100_000), W)
        return weakref.ref(vm)

    use()
    gc.collect()
    tracemalloc.start()
    machine = use()
    gc.collect()
    left, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert machine() is None
    assert left < 100_000


@pytest.mark.parametrize("module", [CHAIN, LOOP], ids=["chain", "loop"])
def test_threads_share_a_machine(module: str) -> None:
    vms = machines(build(parse(module)), num_threads=1)
    main, reference = vms["auto"]["main"], vms["interpreter"]["main"]
    expected = {rows: reference(x_of(rows), SQUARE, TURNS) for rows in range(1, 20)}
    wrong: list[int] = []
    sizes: list[tuple[int, int]] = []

    def work(first: int) -> None:
        for turn in range(1000):
            rows = 1 + (first + turn) % 19
            if not np.array_equal(main(x_of(rows), SQUARE, TURNS), expected[rows]):
                wrong.append(rows)

    for _ in range(2):
        threads = [Thread(target=work, args=(first,)) for first in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        sizes.append(memory_of(main))

    assert not wrong
    records, size = sizes[1]
    assert records <= 8
    assert size <= 8 * 10_000  # what one call with 19 rows needs, with room to grow, is 7.5 kB
