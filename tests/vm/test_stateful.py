"""Calls in steps, functions saved with their arguments, closures called from outside."""

import threading
from typing import Any

import numpy as np
import pytest

from relax_egraph import build, parse
from relax_egraph.errors import RunError
from relax_egraph.vm import ExecBuilder, VirtualMachine
from relax_egraph.vm.machine import Engine
from tests.support.native import MODULE, W, x_of

ENGINES: tuple[Engine, ...] = ("interpreter", "native")


@pytest.fixture(params=ENGINES)
def vm(request: pytest.FixtureRequest) -> VirtualMachine:
    return VirtualMachine(build(parse(MODULE)), engine=request.param)


def test_arguments_are_set_the_function_runs_its_result_is_asked_for(vm: VirtualMachine) -> None:
    x = x_of(3)

    vm.set_input("main", x, w=W)
    vm.invoke_stateful("main")
    outputs = vm.get_outputs("main")

    np.testing.assert_array_equal(outputs[0], -np.square(x + W))
    assert outputs[4] == (3, 4)


def test_an_input_that_is_not_copied_may_be_written_between_calls(vm: VirtualMachine) -> None:
    x = x_of(2)
    vm.set_input("main", x, W)
    vm.invoke_stateful("main")
    x[:] = 0

    before, after = vm.get_outputs("main")[0], -np.square(x_of(2) + W)
    vm.invoke_stateful("main")

    np.testing.assert_array_equal(before, after)
    np.testing.assert_array_equal(vm.get_outputs("main")[0], np.tile(-np.square(W), (2, 1)))


def test_steps_come_in_order(vm: VirtualMachine) -> None:
    with pytest.raises(RunError) as without_input:
        vm.invoke_stateful("main")
    vm.set_input("main", x_of(1), W)
    with pytest.raises(RunError) as without_result:
        vm.get_outputs("main")

    assert str(without_input.value) == (
        "function 'main' has no arguments yet in this thread: use set_input"
    )
    assert str(without_result.value) == (
        "function 'main' has no result yet in this thread: use invoke_stateful"
    )


def test_wrong_input_leaves_what_was_set(vm: VirtualMachine) -> None:
    vm.set_input("main", x_of(1), W)

    with pytest.raises(RunError, match=r"\) takes 2 arguments, got 1$"):
        vm.set_input("main", x_of(2))
    vm.invoke_stateful("main")

    assert vm.get_outputs("main")[4] == (1, 4)


def test_each_thread_has_its_own_inputs_and_results(vm: VirtualMachine) -> None:
    meet = threading.Barrier(8, timeout=60)
    found: dict[int, Any] = {}

    def run(rows: int) -> None:
        meet.wait()
        for _ in range(50):
            vm.set_input("main", x_of(rows), W)
            vm.invoke_stateful("main")
            found.setdefault(rows, set()).add(vm.get_outputs("main")[4])

    threads = [threading.Thread(target=run, args=[rows]) for rows in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert found == {rows: {(rows, 4)} for rows in range(1, 9)}


def test_a_function_is_saved_with_its_arguments(vm: VirtualMachine) -> None:
    x = x_of(2)

    vm.save_function("main", "main of x", x, w=W)
    result = vm["main of x"]()

    assert "main of x" in vm
    np.testing.assert_array_equal(result[0], -np.square(x + W))


def test_arguments_of_a_saved_function_are_converted_once(vm: VirtualMachine) -> None:
    class Counted:
        reads = 0

        def __dlpack__(self, **options: Any) -> Any:
            Counted.reads += 1
            return x_of(2).__dlpack__(**options)

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

    vm.save_function("main", "saved", Counted(), W)
    results = [vm["saved"]()[0] for _ in range(3)]

    assert Counted.reads == 1
    np.testing.assert_array_equal(results, [-np.square(x_of(2) + W)] * 3)


def test_a_saved_function_is_replaced_by_another_and_is_itself_one(vm: VirtualMachine) -> None:
    vm.save_function("main", "saved", x_of(2), W)
    vm.save_function("saved", "again")
    vm.save_function("main", "saved", x_of(3), W)

    shapes = [vm[name]()[4] for name in ("saved", "again")]

    assert shapes == [(3, 4), (2, 4)]


def test_a_function_of_the_executable_is_not_replaced(vm: VirtualMachine) -> None:
    with pytest.raises(ValueError, match=r"^the executable has a function 'main': save it by"):
        vm.save_function("main", "main", x_of(2), W)


def test_what_is_not_there_is_not_called_in_steps_either(vm: VirtualMachine) -> None:
    vm.save_function("main", "saved", x_of(1), W)
    message = "no function 'nothing' to call; there are: main, saved"

    for call in (vm.set_input, vm.time_evaluator("nothing"), vm.profile):
        with pytest.raises(KeyError) as error:
            call("nothing")
        assert error.value.args == (message,)


def test_a_closure_is_called_from_outside() -> None:
    ib = ExecBuilder()
    with ib.function("pair", 2, private=True):
        ib.emit_call("vm.builtin.make_tuple", [ib.r(0), ib.r(1)], dst=ib.r(2))
        ib.emit_ret(ib.r(2))
    with ib.function("main", 1):
        ib.emit_call("vm.builtin.make_closure", [ib.f("pair"), ib.r(0)], dst=ib.r(1))
        ib.emit_ret(ib.r(1))
    vm = VirtualMachine(ib.get())
    x = np.arange(6.0)[::2]

    closure = vm["main"](7)
    first, second = vm.invoke_closure(closure, x)

    np.testing.assert_array_equal(first, x)
    assert first.flags.c_contiguous
    assert second == 7
    with pytest.raises(TypeError, match=r"^closure is \(3,\), needs a closure, which a function "):
        vm.invoke_closure((3,))
