"""What calls of native functions allocate, from one thread and from several."""

import gc
import sys
import tracemalloc
import weakref
from threading import Thread

import numpy as np

from relax_egraph import VirtualMachine, build, parse
from relax_egraph.lower.runtime.driver_link import memory_of
from tests.native import MODULE, W, main_of, x_of


def test_a_call_allocates_only_what_it_returns() -> None:
    main = main_of(MODULE)
    x = x_of(7)
    main(x, W)
    gc.collect()

    before = sys.getallocatedblocks(), memory_of(main)
    for _ in range(1000):
        main(x, W)
    after = sys.getallocatedblocks(), memory_of(main)

    assert after[0] - before[0] < 10
    assert after[1] == before[1] == (1, 256)


def test_nothing_is_allocated_for_a_while() -> None:
    main = main_of(MODULE)
    x = x_of(7)
    for _ in range(3):
        main(x, W)

    tracemalloc.start()
    held = main(x, W)
    left, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert held[4] == (7, 4)
    assert peak == left


def test_an_arena_is_as_large_as_the_largest_call_needed() -> None:
    main = main_of(MODULE)
    sizes: list[tuple[int, int]] = []

    for rows in (1, 100, 3, 0):
        main(x_of(rows), W)
        sizes.append(memory_of(main))

    assert sizes == [(1, 128), (1, 3200), (1, 3200), (1, 3200)]


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


def test_threads_share_a_machine() -> None:
    main = main_of(MODULE)
    wrong: list[int] = []

    def work(rows: int) -> None:
        for turn in range(300):
            x = x_of(1 + (rows + turn) % 17 * rows)
            if not np.array_equal(main(x, W)[0], -np.square(x + W)):
                wrong.append(rows)

    threads = [Thread(target=work, args=(rows,)) for rows in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert not wrong
    assert memory_of(main)[0] <= 8
