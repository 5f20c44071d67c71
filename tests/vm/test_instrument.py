"""A function of the user's sees each call of a packed function, and may keep it from happening."""

import operator
from typing import Any

import numpy as np
import pytest

from relax_egraph import build, parse
from relax_egraph.errors import RunError
from relax_egraph.vm import ExecBuilder, Executable, VirtualMachine
from relax_egraph.vm.instrument import CallEvent, Skip
from tests.support.native import MODULE, W, x_of


def sums() -> Executable:
    """``main(x)`` is ``twice(x) + 1``."""
    ib = ExecBuilder()
    with ib.function("main", 1):
        ib.emit_call("twice", [ib.r(0)], dst=ib.r(1))
        ib.emit_call("add", [ib.r(1), 1], dst=ib.r(1))
        ib.emit_ret(ib.r(1))
    return ib.get()


def twice(x: Any) -> Any:
    return x + x


def machine() -> VirtualMachine:
    return VirtualMachine(sums(), {"twice": twice, "add": operator.add})


def test_calls_are_seen_before_and_after() -> None:
    vm, seen = machine(), list[CallEvent]()
    vm.set_instrument(seen.append)

    result = vm["main"](5)

    assert result == 11
    told = [(e.when, e.name, e.function, e.instruction, e.arguments, e.result) for e in seen]
    assert told == [
        ("before", "twice", "main", 0, (5,), None),
        ("after", "twice", "main", 0, (5,), 10),
        ("before", "add", "main", 1, (10, 1), None),
        ("after", "add", "main", 1, (10, 1), 11),
    ]


def test_of_a_kernel_its_arrays_are_seen_and_which_value_it_computes() -> None:
    vm, seen = VirtualMachine(build(parse(MODULE))), list[CallEvent]()
    kernels, sums = vm.executable.kernel_names, list[Any]()

    def see(event: CallEvent) -> None:
        if event.name in kernels and event.when == "after":
            seen.append(event)
            sums.append(event.arguments[-2].copy())

    vm.set_instrument(see)
    vm["main"](x_of(2), W)

    assert [e.name for e in seen] == ["add", "multiply", "negative"]
    assert seen[0].origin.startswith("y (")
    np.testing.assert_array_equal(sums[0], x_of(2) + W)


def test_a_call_that_is_skipped_has_the_result_that_is_given() -> None:
    vm = machine()

    def skip(event: CallEvent) -> Skip | None:
        return Skip(100) if event.name == "twice" else None

    vm.set_instrument(skip)

    assert vm["main"](5) == 101


def test_what_is_given_for_a_result_becomes_what_kernels_take() -> None:
    vm = machine()
    turned = np.ones((2, 3)).T

    def replace(event: CallEvent) -> Skip:
        return Skip(turned if event.name == "twice" else event.arguments[0])

    vm.set_instrument(replace)
    result = vm["main"](5)

    assert result.flags.c_contiguous
    np.testing.assert_array_equal(result, turned)


def test_an_instrument_returns_nothing_or_skip() -> None:
    vm = machine()

    def agree(event: CallEvent) -> Any:
        return True

    vm.set_instrument(agree)
    with pytest.raises(TypeError) as error:
        vm["main"](5)

    assert error.value.args == ("an instrument returns None or Skip(result), not bool",)


def test_none_takes_the_instrument_away() -> None:
    vm, seen = machine(), list[CallEvent]()
    vm.save_function("main", "saved", 5)
    vm.set_instrument(seen.append)
    watched = vm["saved"]

    vm.set_instrument(None)
    assert vm["saved"]() == vm["main"](5) == 11
    assert seen == []

    assert watched() == 11
    assert len(seen) == 4


def test_calls_in_steps_are_seen() -> None:
    vm, seen = machine(), list[CallEvent]()
    vm.set_input("main", 5)
    vm.set_instrument(seen.append)

    vm.invoke_stateful("main")

    assert [e.name for e in seen if e.when == "before"] == ["twice", "add"]


def test_an_exception_of_an_instrument_arrives_and_the_machine_stays_usable() -> None:
    vm = machine()

    def refuse(event: CallEvent) -> None:
        raise ArithmeticError(f"no {event.name}")

    vm.set_instrument(refuse)
    with pytest.raises(ArithmeticError, match="no twice"):
        vm["main"](5)
    vm.set_instrument(None)

    assert vm["main"](5) == 11


def test_errors_are_the_same_while_watched() -> None:
    vm = VirtualMachine(build(parse(MODULE)))
    wrong: Any = W[:3]
    messages: list[str] = []

    for instrument in (None, list[CallEvent]().append):
        vm.set_instrument(instrument)
        with pytest.raises(RunError) as error:
            vm["main"](x_of(1), wrong)
        messages.append(str(error.value))

    assert messages[0] == messages[1]
