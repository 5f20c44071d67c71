"""Calls of the interpreter in the place of their caller, and closures."""

import operator

import pytest

from relax_egraph.errors import RunError
from relax_egraph.vm import ExecBuilder, Executable, VirtualMachine
from relax_egraph.vm.binary import from_bytes
from relax_egraph.vm.machine import Engine


def countdown(*, copies: bool) -> Executable:
    """``main(n)`` calls itself with ``n - 1`` and returns what that returns, or 7 of 0."""
    ib = ExecBuilder()
    with ib.function("main", 1):
        zero, end = ib.label(), ib.label()
        ib.emit_if(ib.r(0), zero)
        ib.emit_call("sub", [ib.r(0), 1], dst=ib.r(1))
        ib.emit_call("main", [ib.r(1)], dst=ib.r(2))
        if copies:
            ib.emit_call("vm.builtin.copy", [ib.r(2)], dst=ib.r(3))
            ib.emit_goto(end)
        else:
            ib.emit_ret(ib.r(2))
        ib.place(zero)
        ib.emit_call("vm.builtin.copy", [ib.imm(7)], dst=ib.r(3))
        ib.place(end)
        ib.emit_ret(ib.r(3))
    return ib.get()


@pytest.mark.parametrize("copies", [False, True])
def test_a_call_that_is_returned_takes_the_place_of_its_caller(copies: bool) -> None:
    vm = VirtualMachine(countdown(copies=copies), {"sub": operator.sub}, max_depth=1)

    assert vm["main"](1000) == 7


def test_a_call_of_which_the_result_is_not_what_is_returned_keeps_its_caller() -> None:
    ib = ExecBuilder()
    with ib.function("callee", 1):
        ib.emit_ret(ib.r(0))
    with ib.function("main", 2, allow_unused=True):
        ib.emit_call("callee", [ib.r(0)], dst=ib.r(2))
        ib.emit_ret(ib.r(1))
    with ib.function("nothing", 1):
        ib.emit_call("callee", [ib.r(0)])
        ib.emit_ret(ib.void_arg())
    vm = VirtualMachine(ib.get())

    assert vm["main"](1, 2) == 2
    assert vm["nothing"](1) is None


def test_closures_are_called_without_depth_where_their_result_is_returned() -> None:
    ib = ExecBuilder()
    with ib.function("down", 3, private=True):
        zero = ib.label()
        ib.emit_if(ib.r(0), zero)
        ib.emit_call("sub", [ib.r(0), ib.r(2)], dst=ib.r(3))
        ib.emit_call("vm.builtin.make_closure", [ib.r(1), ib.r(2)], dst=ib.r(4))
        ib.emit_call("vm.builtin.invoke_closure", [ib.r(4), ib.r(3), ib.r(1)], dst=ib.r(5))
        ib.emit_ret(ib.r(5))
        ib.place(zero)
        ib.emit_ret(ib.imm(7))
    with ib.function("main", 1):
        ib.emit_call("down", [ib.r(0), ib.f("down"), 1], dst=ib.r(1))
        ib.emit_ret(ib.r(1))
    vm = VirtualMachine(ib.get(), {"sub": operator.sub}, max_depth=1)

    assert vm["main"](20_000) == 7


def test_closures_within_closures_are_counted_as_calls() -> None:
    ib = ExecBuilder()
    with ib.function("main", 2):
        ib.emit_call("vm.builtin.invoke_closure", [ib.r(1), ib.r(0), ib.r(1)], dst=ib.r(2))
        ib.emit_call("sub", [ib.r(2), 1], dst=ib.r(3))
        ib.emit_ret(ib.r(3))
    with ib.function("start"):
        ib.emit_call("main", [0, ib.f("main")], dst=ib.r(0))
        ib.emit_ret(ib.r(0))
    vm = VirtualMachine(ib.get(), {"sub": operator.sub}, max_depth=2000)

    with pytest.raises(RunError) as error:
        vm["start"]()
    assert str(error.value) == "more than 2000 calls within calls"


def test_captured_values_come_last_and_those_of_the_inner_closure_last_of_all() -> None:
    ib = ExecBuilder()
    with ib.function("triple", 3, private=True):
        ib.emit_call("vm.builtin.make_tuple", [ib.r(0), ib.r(1), ib.r(2)], dst=ib.r(3))
        ib.emit_ret(ib.r(3))
    with ib.function("main"):
        ib.emit_call("vm.builtin.make_closure", [ib.f("triple"), 3], dst=ib.r(0))
        ib.emit_call("vm.builtin.make_closure", [ib.r(0), 2], dst=ib.r(1))
        ib.emit_ret(ib.r(1))

    closure = VirtualMachine(ib.get())["main"]()

    assert closure(1) == (1, 2, 3)


@pytest.mark.parametrize("engine", ["interpreter", "auto"])
def test_a_function_of_the_user_says_itself_how_many_arguments_it_takes(engine: Engine) -> None:
    def ask(x: object) -> object:
        return x

    ib = ExecBuilder()
    with ib.function("right", 1):
        ib.emit_call("test.ask", [ib.r(0)], dst=ib.r(1))
        ib.emit_ret(ib.r(1))
    with ib.function("wrong", 1):
        ib.emit_call("test.ask", [ib.r(0), 5], dst=ib.r(1))
        ib.emit_ret(ib.r(1))
    vm = VirtualMachine(from_bytes(ib.get().to_bytes()), {"test.ask": ask}, engine=engine)

    assert vm["right"](3) == 3
    with pytest.raises(TypeError, match="takes 1 positional argument but 2 were given") as error:
        vm["wrong"](3)
    assert error.value.__notes__ == [
        "virtual machine stack, innermost last:\n"
        "  wrong, instruction 0: call  test.ask  in: %0, i5  dst: %1"
    ]
    assert vm["right"](4) == 4
