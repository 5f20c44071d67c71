"""What is known of code before it runs: last uses of registers, tail calls."""

import operator
from collections.abc import Callable
from functools import partial

import pytest

from relax_egraph.vm import ExecBuilder, Executable, VirtualMachine
from relax_egraph.vm.analysis import dying_registers, live_registers, tail_calls


def branching() -> Executable:
    """A function that calls itself in one branch, and needs a value in one branch only."""
    ib = ExecBuilder()
    with ib.function("main", 2, ["x", "y"]):
        other, end = ib.label(), ib.label()
        ib.emit_call("f", [ib.r(0)], dst=ib.r(2), origin="lv")
        ib.emit_if(ib.r(1), other)
        ib.emit_call("f", [ib.r(2), ib.r(2)], dst=ib.r(3))
        ib.emit_call("main", [ib.r(0), ib.r(3)], dst=ib.r(4), origin="gv")
        ib.emit_call("vm.builtin.copy", [ib.r(4)], dst=ib.r(5))
        ib.emit_goto(end)
        ib.place(other)
        ib.emit_call("f", dst=ib.r(6))
        ib.emit_call("vm.builtin.copy", [ib.r(1)], dst=ib.r(5))
        ib.place(end)
        ib.emit_ret(ib.r(5))
    return ib.get()


def test_a_listing_shows_tail_calls_and_the_last_uses_of_registers() -> None:
    listing = branching().as_text(analyses=True)

    assert listing == (
        "@main(x, y):\n"
        "    0  call  f  in: %0  dst: %2  # lv\n"
        "    1  if    %1  else: 6\n"
        "    2  call  f  in: %2, %2  dst: %3  # last of %2\n"
        "    3  call  main  in: %0, %3  dst: %4  # gv; tail call; last of %0, %3\n"
        "    4  call  vm.builtin.copy  in: %4  dst: %5  # last of %4\n"
        "    5  goto  8\n"
        "    6  call  f  in:   dst: %6  # last of %6\n"
        "    7  call  vm.builtin.copy  in: %1  dst: %5  # last of %1\n"
        "    8  ret   %5  # last of %5"
    )


def test_a_register_that_is_written_anew_holds_its_value_for_the_last_time() -> None:
    ib = ExecBuilder()
    with ib.function("main", 1):
        ib.emit_call("f", [ib.r(0)], dst=ib.r(0))
        ib.emit_ret(ib.r(0))
    exe = ib.get()

    dying = dying_registers(exe.instructions(exe["main"]))

    assert dying == [(0,), (0,)]


def test_what_a_loop_reads_in_its_next_turn_is_live() -> None:
    ib = ExecBuilder()
    with ib.function("main", 2):
        again, end = ib.label(), ib.label()
        ib.place(again)
        ib.emit_if(ib.r(0), end)
        ib.emit_call("f", [ib.r(0), ib.r(1)], dst=ib.r(0))
        ib.emit_goto(again)
        ib.place(end)
        ib.emit_ret(ib.r(0))
    exe = ib.get()
    code = exe.instructions(exe["main"])

    assert live_registers(code) == [0b11, 0b11, 0b11, 0b01]
    assert dying_registers(code) == [(), (0,), (), (0,)]


def returned(ib: ExecBuilder) -> None:
    ib.emit_call("main", [ib.r(0)], dst=ib.r(1))
    ib.emit_ret(ib.r(1))


def jumped_over(ib: ExecBuilder) -> None:
    there, back = ib.label(), ib.label()
    ib.emit_call("main", [ib.r(0)], dst=ib.r(1))
    ib.emit_goto(there)
    ib.place(back)
    ib.emit_ret(ib.r(2))
    ib.place(there)
    ib.emit_call("vm.builtin.copy", [ib.r(1)], dst=ib.r(2))
    ib.emit_goto(back)


def invoked(ib: ExecBuilder) -> None:
    ib.emit_call("vm.builtin.invoke_closure", [ib.r(0)], dst=ib.r(1))
    ib.emit_ret(ib.r(1))


def of_a_packed_function(ib: ExecBuilder) -> None:
    ib.emit_call("f", [ib.r(0)], dst=ib.r(1))
    ib.emit_ret(ib.r(1))


def of_another_value(ib: ExecBuilder) -> None:
    ib.emit_call("main", [ib.r(0)], dst=ib.r(1))
    ib.emit_ret(ib.r(0))


def copied_but_not_returned(ib: ExecBuilder) -> None:
    ib.emit_call("main", [ib.r(0)], dst=ib.r(1))
    ib.emit_call("vm.builtin.copy", [ib.r(1)], dst=ib.r(2))
    ib.emit_ret(ib.r(0))


def dropped(ib: ExecBuilder) -> None:
    ib.emit_call("main", [ib.r(0)])
    ib.emit_ret(ib.void_arg())


def before_a_circle(ib: ExecBuilder) -> None:
    ib.emit_call("main", [ib.r(0)], dst=ib.r(1))
    ib.emit_call("vm.builtin.copy", [ib.r(1)], dst=ib.r(1))
    ib.emit_goto(-1)


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        *((returned, {0}), (jumped_over, {0}), (invoked, {0})),
        *((of_a_packed_function, set()), (of_another_value, set())),
        *((copied_but_not_returned, set()), (dropped, set()), (before_a_circle, set())),
    ],
)
def test_a_tail_call_is_one_whose_result_is_returned(
    emit: Callable[[ExecBuilder], None], found: set[int]
) -> None:
    ib = ExecBuilder()
    with ib.function("main", 1):
        emit(ib)
    exe = ib.get()

    assert tail_calls(exe, exe.instructions(exe["main"])) == found


def test_a_copy_of_the_users_is_called() -> None:
    ib = ExecBuilder()
    with ib.function("inner", 1):
        ib.emit_ret(ib.r(0))
    with ib.function("main", 1):
        ib.emit_call("inner", [ib.r(0)], dst=ib.r(1))
        ib.emit_call("vm.builtin.copy", [ib.r(1)], dst=ib.r(1))
        ib.emit_ret(ib.r(1))

    vm = VirtualMachine(ib.get(), {"vm.builtin.copy": partial(operator.add, 1)})

    assert vm["main"](1) == 2
