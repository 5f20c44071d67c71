"""One machine, many threads: calls of other sizes, new entries, re-entrance, memory."""

import gc
import threading
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from relax_egraph import build, parse
from relax_egraph.lower.runtime.driver_link import memory_of
from relax_egraph.vm import ExecBuilder, Executable, VirtualMachine
from relax_egraph.vm.machine import Engine
from tests.support.native import MODULE, W, with_kernels, x_of

ENGINES: tuple[Engine, ...] = ("interpreter", "native")
THREADS, CALLS = 8, 1000


def together(work: Callable[[int], None], count: int = THREADS) -> None:
    """Call `work` with 0, 1, … in threads that begin at once; raise what one of them raised."""
    meet = threading.Barrier(count, timeout=60)
    raised: list[BaseException] = []

    def run(number: int) -> None:
        meet.wait()
        try:
            work(number)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in raised:
        raise error


@pytest.fixture(scope="module")
def executable() -> Executable:
    return build(parse(MODULE))


@pytest.mark.parametrize("engine", ENGINES)
def test_calls_of_many_sizes_are_right_and_memory_stays(
    executable: Executable, engine: Engine
) -> None:
    vm = VirtualMachine(executable, engine=engine)
    wrong: list[int] = []

    def work(number: int) -> None:
        main = vm["main"]
        for turn in range(CALLS):
            x = x_of((7 * turn + number) % 61)
            result = main(x, W) if turn % 2 else main(w=W, x=x)
            if not np.array_equal(result[0], -np.square(x + W)):
                wrong.append(len(x))

    together(work)
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    together(work)
    gc.collect()
    after, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert not wrong
    assert after - before < 50_000
    assert peak - before < 2_000_000
    if engine == "native":
        records, arenas = memory_of(vm["main"])
        assert records <= THREADS
        assert arenas <= THREADS * 61 * 64


@pytest.mark.parametrize("engine", ENGINES)
def test_entries_that_are_made_at_once_are_the_same(executable: Executable, engine: Engine) -> None:
    for _ in range(20):
        vm = VirtualMachine(executable, engine=engine)
        found: list[Callable[..., Any]] = []

        def work(number: int, vm: VirtualMachine = vm, found: list[Any] = found) -> None:
            found.append(vm["main"])
            vm.save_function("main", f"saved {number}", x_of(number), W)

        together(work)

        assert len(found) == THREADS
        assert len(set(map(id, found))) == 1
        shapes = [vm[f"saved {number}"]()[4] for number in range(THREADS)]
        assert shapes == [(number, 4) for number in range(THREADS)]


def test_instruments_come_and_go_while_others_call(executable: Executable) -> None:
    vm = VirtualMachine(executable)
    seen: list[str] = []

    def work(number: int) -> None:
        for turn in range(50):
            if number == 0:
                vm.set_instrument((lambda e: seen.append(e.name)) if turn % 2 else None)
            x = x_of(turn)
            np.testing.assert_array_equal(vm["main"](x, W)[0], -np.square(x + W))

    together(work)
    vm.set_instrument(None)
    count = len(seen)
    vm["main"](x_of(1), W)

    assert len(seen) == count


@pytest.mark.parametrize("engine", ENGINES)
def test_profiles_and_timings_run_beside_calls(executable: Executable, engine: Engine) -> None:
    vm = VirtualMachine(executable, engine=engine)
    rows: list[int] = []

    def work(number: int) -> None:
        for turn in range(20):
            x = x_of(turn + number)
            if number % 2:
                rows.append(len(vm.profile("main", x, W, repeat=2).calls))
            else:
                np.testing.assert_array_equal(vm["main"](x, W)[0], -np.square(x + W))

    together(work)

    assert len(set(rows)) == 1


# --- calls back into the machine --------------------------------------------------------


def calling_back(back: Callable[..., Any]) -> VirtualMachine:
    """``main(x, n)`` is ``add(x, x)``, handed to `back` before and after."""
    ib = ExecBuilder()
    with ib.function("main", 3, ["x", "y", "n"]):
        ib.emit_call("back", [ib.r(0), ib.r(2)], dst=ib.r(3))
        ib.emit_call("add", [ib.r(0), ib.r(0), ib.r(1), ib.r(2)])
        ib.emit_call("vm.builtin.make_tuple", [ib.r(1), ib.r(3)], dst=ib.r(1))
        ib.emit_ret(ib.r(1))
    with ib.function("double", 3, ["x", "y", "n"]):
        ib.emit_call("add", [ib.r(0), ib.r(0), ib.r(1), ib.r(2)])
        ib.emit_ret(ib.r(1))
    return VirtualMachine(with_kernels(ib), {"back": back})


def floats(count: int) -> Any:
    return np.arange(count, dtype=np.float32)


def nested(vm: VirtualMachine, count: int) -> Any:
    return vm["main"](floats(count), floats(count), count)


def test_a_packed_function_calls_the_machine_that_calls_it() -> None:
    def back(x: Any, n: int) -> Any:
        return nested(vm, n - 1) if n else "the end"

    vm = calling_back(back)

    y, inner = nested(vm, 20)

    for count in range(20, 0, -1):
        np.testing.assert_array_equal(y, 2 * floats(count))
        y, inner = inner
    assert inner == "the end"


def test_a_packed_function_calls_the_machine_from_another_thread() -> None:
    def back(x: Any, n: int) -> Any:
        found: list[Any] = []
        thread = threading.Thread(target=lambda: found.append(vm["double"](x, floats(n), n)))
        thread.start()
        thread.join(timeout=60)
        return found[0]

    vm = calling_back(back)

    results = [nested(vm, count) for count in (0, 1, 9)]

    for (y, other), count in zip(results, (0, 1, 9), strict=True):
        np.testing.assert_array_equal(y, 2 * floats(count))
        np.testing.assert_array_equal(other, 2 * floats(count))


def test_a_packed_function_of_many_threads_calls_the_machine() -> None:
    def back(x: Any, n: int) -> Any:
        return vm["double"](y=floats(n), x=x, n=n)

    vm = calling_back(back)

    def work(number: int) -> None:
        for turn in range(100):
            count = (turn + number) % 9
            y, other = nested(vm, count)
            np.testing.assert_array_equal(y, 2 * floats(count))
            np.testing.assert_array_equal(other, 2 * floats(count))

    together(work)
