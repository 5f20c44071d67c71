"""One machine, many threads: every result is right, and memory does not grow."""

import gc
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from examples.digits.model import Digits, build_model
from relax_egraph.lower.runtime.driver_link import memory_of
from relax_egraph.vm.machine import Engine

THREADS, CALLS = 8, 1000
SIZES = range(1, 40)
GROWTH = 4 << 20
"""Bytes that a process may grow by for reasons of its own."""

ROUNDS = 3
"""The rounds of calls of which one must not grow: a leak grows in each, an allocator in some."""

PAGES = Path("/proc/self/statm")

CONTROL = """
@I.ir_module
class Module:
    @R.function(pure=False)
    def main(i: R.Tensor((), "int64"), x: R.Tensor(("n",), "float32")):
        cls = Module
        n = T.int64()
        more = R.greater(i, R.const(0, "int64"))
        if more:
            y = R.call_packed("user.twice", x, sinfo_args=R.Tensor((n,), "float32"))
            r = cls.main(R.subtract(i, R.const(1, "int64")), R.add(y, x))
        else:
            r = x
        return r
"""


def in_threads(work: Callable[[int], None]) -> None:
    """Call `work` with the number of each thread; raises what any of them raised."""
    barrier, errors = Barrier(THREADS), list[BaseException]()

    def run(number: int) -> None:
        barrier.wait()
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in errors:
        raise error


def held() -> int:
    """The bytes that this process holds."""
    return int(PAGES.read_text().split()[1]) * 4096


def growth_of(work: Callable[[], None]) -> tuple[int, int]:
    """The Python objects and the bytes that this process holds more of after `work`."""
    gc.collect()
    before = sys.getallocatedblocks(), held()
    work()
    gc.collect()
    return sys.getallocatedblocks() - before[0], held() - before[1]


@pytest.mark.skipif(not PAGES.exists(), reason="the system does not say what a process holds")
@pytest.mark.parametrize("num_threads", [1, 2])
@pytest.mark.parametrize("engine", ["auto", "interpreter"])
def test_eight_threads_with_sizes_of_their_own(engine: Engine, num_threads: int) -> None:
    digits = Digits.load()
    exe = rx.build(rx.optimize(build_model(digits.weights)))
    main = rx.VirtualMachine(exe, engine=engine, num_threads=num_threads)["main"]
    images = [np.ascontiguousarray(digits.images[n : 2 * n]) for n in SIZES]
    expected = [main(x) for x in images]
    for x, logits in zip(images, expected, strict=True):
        np.testing.assert_allclose(logits, digits.logits(x), rtol=1e-4, atol=1e-4)

    def work(number: int) -> None:
        for turn in range(CALLS):
            k = (turn * (2 * number + 1) + number) % len(images)
            if main(images[k]).tobytes() != expected[k].tobytes():
                raise AssertionError(f"thread {number}, call {turn}: n = {len(images[k])}")

    in_threads(work)
    growths = [growth_of(lambda: in_threads(work)) for _ in range(ROUNDS)]

    assert min(blocks for blocks, _ in growths) < 500
    assert min(size for _, size in growths) < GROWTH
    if engine == "auto":
        records, arenas = memory_of(main)
        assert records <= THREADS
        assert arenas <= THREADS * max(SIZES) * 128 * 4 * 2


@pytest.mark.parametrize("engine", ["auto", "interpreter"])
def test_threads_in_loops_and_functions_of_python(engine: Engine) -> None:
    def twice(x: Any) -> Any:
        return 2 * x

    main = rx.VirtualMachine(
        rx.build(rx.parse(CONTROL)), {"user.twice": twice}, engine=engine, num_threads=1
    )["main"]

    def work(number: int) -> None:
        for turn in range(60):
            times, n = (turn + number) % 4, 1 + (turn * number) % 13
            x = np.full(n, number, np.float32)
            np.testing.assert_array_equal(main(np.array(times), x), x * 3**times)

    in_threads(work)


@pytest.mark.parametrize("engine", ["auto", "interpreter"])
def test_each_thread_has_arguments_of_its_own(engine: Engine) -> None:
    vm = rx.VirtualMachine(
        rx.build(rx.parse(CONTROL)), {"user.twice": np.negative}, engine=engine, num_threads=1
    )

    def work(number: int) -> None:
        x = np.full(number + 1, number, np.float32)
        vm.set_input("main", np.array(0), x)
        for _ in range(100):
            vm.invoke_stateful("main")
            np.testing.assert_array_equal(vm.get_outputs("main"), x)

    in_threads(work)


def test_machines_are_made_and_dropped_in_threads() -> None:
    exe = rx.build(build_model(Digits.load().weights))
    x = Digits.load().images[:3]
    expected = rx.VirtualMachine(exe)["main"](x)

    def work(_: int) -> None:
        for turn in range(5):
            main = rx.VirtualMachine(exe, num_threads=1 + turn % 2)["main"]
            np.testing.assert_array_equal(main(x), expected)

    in_threads(work)
