"""The note that an exception carries out of the machine: where all calls were."""

import copy
import gc
import operator
import pickle
import signal
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph.errors import RunError
from relax_egraph.vm import ExecBuilder, Executable, VirtualMachine
from tests.support.native import W, machines, with_kernels

HEAD = "virtual machine stack, innermost last:\n"


def failing(_: Any) -> Any:
    raise ArithmeticError("no")


def raised(run: Callable[[], object], kind: type[BaseException] = ArithmeticError) -> Any:
    with pytest.raises(kind) as error:
        run()
    return error.value


def two_deep() -> Executable:
    """``main(x)`` is one more than ``inner(x)``, which calls ``check``."""
    ib = ExecBuilder()
    with ib.function("inner", 1, ["x"], private=True):
        ib.emit_call("check", [ib.r(0)], dst=ib.r(1), origin="y (model.py:7:9)")
        ib.emit_call("add", [ib.r(1), 1], dst=ib.r(1), origin="z")
        ib.emit_ret(ib.r(1))
    with ib.function("main", 1, ["x"]):
        ib.emit_call("inner", [ib.r(0)], dst=ib.r(1), origin="lv3 (model.py:12:9)")
        ib.emit_call("add", [ib.r(1), 1], dst=ib.r(1))
        ib.emit_ret(ib.r(1))
    return ib.get()


def positive(x: int) -> int:
    if x < 0:
        raise ArithmeticError(f"{x} is negative")
    return x


PACKED = {"check": positive, "add": operator.add}


def test_functions_instructions_and_the_names_of_values_are_in_the_note() -> None:
    vm = VirtualMachine(two_deep(), PACKED)

    error = raised(lambda: vm["main"](-1))

    assert str(error) == "-1 is negative"
    assert error.__notes__ == [
        HEAD + "  main, instruction 0: call  inner  in: %0  dst: %1  # lv3 (model.py:12:9)\n"
        "  inner, instruction 0: call  check  in: %0  dst: %1  # y (model.py:7:9)"
    ]


def test_the_machine_is_as_it_was_after_many_exceptions() -> None:
    vm = VirtualMachine(two_deep(), PACKED)
    main = vm["main"]

    errors = [raised(lambda: main(-1)) for _ in range(100)]

    assert len({id(e) for e in errors}) == len(errors)
    assert {len(e.__notes__) for e in errors} == {1}
    assert main(5) == 7


class Owner:
    """Something that registers refer to."""


def test_nothing_of_a_call_that_failed_is_kept() -> None:
    ib = ExecBuilder()
    with ib.function("main"):
        ib.emit_call("make", dst=ib.r(0))
        ib.emit_call("check", [ib.r(0)], dst=ib.r(1))
        ib.emit_ret(ib.r(1))
    alive: list[weakref.ref[Owner]] = []

    def make() -> Owner:
        owner = Owner()
        alive.append(weakref.ref(owner))
        return owner

    vm = VirtualMachine(ib.get(), {"make": make, "check": failing})

    raised(lambda: vm["main"]())
    gc.collect()

    assert [owner() for owner in alive] == [None]


# --- calls in the place of others -----------------------------------------------------


def chain(*, length: int) -> Executable:
    """``f0`` returns what ``f1`` returns, and so on; the last fails."""
    ib = ExecBuilder()
    for i in range(length):
        with ib.function(f"f{i}", 1):
            ib.emit_call("check" if i == length - 1 else f"f{i + 1}", [ib.r(0)], dst=ib.r(1))
            ib.emit_ret(ib.r(1))
    return ib.get()


@pytest.mark.parametrize(("length", "said"), [(1, ""), (2, " (tail call)"), (4, " (3 tail calls)")])
def test_callers_that_were_replaced_are_counted(length: int, said: str) -> None:
    vm = VirtualMachine(chain(length=length), {"check": failing})

    error = raised(lambda: vm["f0"](1))

    last = f"f{length - 1}{said}, instruction 0: call  check  in: %0  dst: %1"
    assert error.__notes__ == [f"{HEAD}  {last}"]


def test_what_a_tail_call_has_called_begins_anew_and_its_caller_goes_on_as_before() -> None:
    ib = ExecBuilder()
    with ib.function("inner", 1):
        ib.emit_ret(ib.r(0))
    with ib.function("last", 1):
        ib.emit_call("inner", [ib.r(0)], dst=ib.r(1))
        ib.emit_call("check", [ib.r(1)], dst=ib.r(1))
        ib.emit_call("add", [ib.r(1), 1], dst=ib.r(1))
        ib.emit_ret(ib.r(1))
    with ib.function("main", 1):
        ib.emit_call("last", [ib.r(0)], dst=ib.r(1))
        ib.emit_ret(ib.r(1))
    vm = VirtualMachine(ib.get(), PACKED)

    error = raised(lambda: vm["main"](-1))

    assert error.__notes__ == [
        HEAD + "  last (tail call), instruction 1: call  check  in: %1  dst: %1"
    ]


def recursive() -> Executable:
    """``main(n)`` is ``main(n - 1)``, checked; ``main(0)`` is ``check(-1)``."""
    ib = ExecBuilder()
    with ib.function("main", 1, ["n"]):
        zero = ib.label()
        ib.emit_if(ib.r(0), zero)
        ib.emit_call("add", [ib.r(0), -1], dst=ib.r(1))
        ib.emit_call("main", [ib.r(1)], dst=ib.r(2), origin="rest")
        ib.emit_call("check", [ib.r(2)], dst=ib.r(2))
        ib.emit_ret(ib.r(2))
        ib.place(zero)
        ib.emit_call("check", [-1], dst=ib.r(2))
        ib.emit_ret(ib.r(2))
    return ib.get()


@pytest.mark.parametrize("depth", [19, 20, 5000])
def test_of_a_deep_stack_both_ends_are_shown(depth: int) -> None:
    vm = VirtualMachine(recursive(), PACKED)
    call = "  main, instruction 2: call  main  in: %1  dst: %2  # rest"
    innermost = "  main, instruction 5: call  check  in: i-1  dst: %2"
    elided = {19: [call] * 19, 20: [call] * 20, 5000: [call] * 10 + ["  … 4 981 more"] + [call] * 9}

    error = raised(lambda: vm["main"](depth))

    assert error.__notes__[0].splitlines() == [HEAD.strip(), *elided[depth], innermost]


def test_too_deep_a_stack_is_an_error_with_a_note() -> None:
    vm = VirtualMachine(recursive(), PACKED, max_depth=3)

    error = raised(lambda: vm["main"](9), RunError)

    assert str(error) == "more than 3 calls within calls"
    assert error.__notes__[0].count("main, instruction 2") == 4


# --- machines within machines ---------------------------------------------------------


def calling_back() -> Executable:
    """``main(x)`` gives ``body``, as a value, to ``apply``."""
    ib = ExecBuilder()
    with ib.function("body", 1, ["y"], private=True):
        ib.emit_call("check", [ib.r(0)], dst=ib.r(1), origin="checked")
        ib.emit_ret(ib.r(1))
    with ib.function("main", 1, ["x"]):
        ib.emit_call("apply", [ib.f("body"), ib.r(0)], dst=ib.r(1), origin="applied")
        ib.emit_ret(ib.r(1))
    return ib.get()


def test_a_run_within_a_run_goes_on_the_note_of_the_outer_one() -> None:
    vm = VirtualMachine(calling_back(), {**PACKED, "apply": operator.call})

    error = raised(lambda: vm["main"](-1))

    assert error.__notes__ == [
        HEAD + "  main, instruction 0: call  apply  in: @body, %0  dst: %1  # applied\n"
        "  body, instruction 0: call  check  in: %0  dst: %1  # checked"
    ]


def test_runs_within_runs_without_end_are_an_error() -> None:
    ib = ExecBuilder()
    with ib.function("main", 1, ["x"]):
        ib.emit_if(ib.r(0), 3)
        ib.emit_call("apply", [ib.f("main"), ib.r(0)], dst=ib.r(1))
        ib.emit_ret(ib.r(1))
        ib.emit_ret(ib.r(0))
    vm = VirtualMachine(ib.get(), {"apply": operator.call})

    error = raised(lambda: vm["main"](1), RecursionError)

    lines = error.__notes__[0].splitlines()
    assert lines[1:] == [*lines[1:2] * 10, lines[11], *lines[1:2] * 10]
    assert lines[1] == "  main, instruction 1: call  apply  in: @main, %0  dst: %1"
    assert vm["main"](0) == 0


def test_a_closure_that_is_called_from_outside_has_a_stack_of_its_own() -> None:
    ib = ExecBuilder()
    with ib.function("body", 2, ["y", "n"], private=True):
        ib.emit_call("check", [ib.r(0), ib.r(1)], dst=ib.r(2))
        ib.emit_ret(ib.r(2))
    with ib.function("main"):
        ib.emit_call("vm.builtin.make_closure", [ib.f("body"), 1], dst=ib.r(0))
        ib.emit_ret(ib.r(0))

    def check(*_: Any) -> Any:
        raise ArithmeticError("no")

    closure = VirtualMachine(ib.get(), {"check": check})["main"]()

    error = raised(lambda: closure(-1))

    assert error.__notes__ == [HEAD + "  body, instruction 0: call  check  in: %0, %1  dst: %2"]


def test_an_exception_that_is_raised_again_has_the_note_of_the_last_time() -> None:
    same = ArithmeticError("no")
    same.add_note("of the user")

    def check(_: Any) -> Any:
        raise same

    vm = VirtualMachine(two_deep(), {**PACKED, "check": check})
    other = VirtualMachine(chain(length=2), {"check": check})

    for _ in range(3):
        raised(lambda: vm["main"](1))
    error = raised(lambda: other["f0"](1))

    assert error.__notes__ == [
        "of the user",
        HEAD + "  f1 (tail call), instruction 0: call  check  in: %0  dst: %1",
    ]


# --- every kind of exception ----------------------------------------------------------


def endless(x: Any) -> Any:
    return endless(x)


def stopping(_: Any) -> Any:
    raise StopIteration


def interrupted(_: Any) -> Any:
    raise KeyboardInterrupt


@dataclass(frozen=True)
class Unwritable(Exception):
    """Takes no note."""

    why: str


def unwritable(_: Any) -> Any:
    raise Unwritable("frozen")


@pytest.mark.parametrize(
    ("check", "kind", "notes"),
    [
        (endless, RecursionError, 1),
        (stopping, StopIteration, 1),
        (interrupted, KeyboardInterrupt, 1),
        (unwritable, Unwritable, 0),
    ],
)
def test_any_exception_arrives_and_the_machine_stays_usable(
    check: Callable[[Any], Any], kind: type[BaseException], notes: int
) -> None:
    broken = [True]

    def sometimes(x: Any) -> Any:
        return check(x) if broken else x

    vm = VirtualMachine(two_deep(), {**PACKED, "check": sometimes})

    error = raised(lambda: vm["main"](1), kind)
    broken.clear()

    assert len(getattr(error, "__notes__", ())) == notes
    assert vm["main"](1) == 3


def test_an_endless_loop_is_interrupted() -> None:
    ib = ExecBuilder()
    with ib.function("main", 1, ["n"]):
        end = ib.label()
        ib.emit_if(ib.r(0), end)
        ib.emit_goto(0)
        ib.place(end)
        ib.emit_ret(ib.r(0))
    vm = VirtualMachine(ib.get())
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)

    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        error = raised(lambda: vm["main"](1), KeyboardInterrupt)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

    assert error.__notes__ == [f"{HEAD}  main, instruction 1: goto  1"]
    assert vm["main"](0) == 0


def test_an_exception_is_copied_and_pickled_with_its_note_as_text() -> None:
    vm = VirtualMachine(two_deep(), PACKED)
    error = raised(lambda: vm["main"](-1))

    copies = [copy.copy(error), pickle.loads(pickle.dumps(error))]

    for other in copies:
        assert [str(n) for n in other.__notes__] == [str(n) for n in error.__notes__]
    assert type(copies[1].__notes__[0]) is str
    assert len(pickle.dumps(error)) < 1000


def test_threads_have_stacks_of_their_own() -> None:
    vm = VirtualMachine(recursive(), PACKED)
    seen: dict[int, int] = {}

    def run(depth: int) -> None:
        seen[depth] = len(raised(lambda: vm["main"](depth)).__notes__[0].splitlines())

    threads = [threading.Thread(target=run, args=[depth]) for depth in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert seen == {depth: depth + 2 for depth in range(8)}


# --- both engines ---------------------------------------------------------------------

MODEL = """
@I.ir_module
class M:
    @R.function
    def checks(x: R.Tensor(("n",), "float32"), w: R.Tensor(("m",), "float32")):
        cls = M
        lv0 = R.exp(x)
        n = T.int64()
        cast = R.match_cast(w, R.Tensor((n,), "float32"))
        lv1 = R.add(lv0, cast)
        lv2 = R.negative(lv1)
        return lv2

    @R.function(pure=False)
    def calls(x: R.Tensor(("n",), "float32"), w: R.Tensor(("m",), "float32")):
        lv0 = R.exp(x)
        lv1 = R.negative(lv0)
        lv2 = R.sqrt(lv1)
        lv3 = R.call_packed("test.check", lv2, sinfo_args=R.Tensor(("n",), "float32"))
        lv4 = R.exp(lv3)
        return lv4
"""


@pytest.mark.parametrize(("function", "kind"), [("checks", RunError), ("calls", ArithmeticError)])
def test_both_engines_say_the_same(function: str, kind: type[Exception]) -> None:
    exe = rx.build(rx.parse(MODEL))
    x, w = np.zeros(4, np.float32), np.zeros(5, np.float32)

    errors = [
        raised(lambda vm=vm: vm[function](x, w), kind)
        for vm in machines(exe, {"test.check": failing}).values()
    ]

    native, interpreted = [(str(e), e.__notes__) for e in errors]
    assert native == interpreted
    assert native[1][0].startswith(f"{HEAD}  {function}, instruction ")


def test_what_the_native_engine_follows_into_callees_is_on_the_stack() -> None:
    ib = ExecBuilder()
    with ib.function("inner", 1, ["x"], private=True):
        where = ["inner: parameter x", 'R.Tensor((3, 5), "float32")']
        ib.emit_call("vm.builtin.check_tensor_info", [ib.r(0), *where, 1, "float32"])
        ib.emit_ret(ib.r(0))
    with ib.function("main", 1, ["x"]):
        ib.emit_call("inner", [ib.r(0)], dst=ib.r(1), origin="lv")
        ib.emit_call("vm.builtin.make_tuple", [ib.r(1)], dst=ib.r(1))
        ib.emit_ret(ib.r(1))
    exe = with_kernels(ib)
    VirtualMachine(exe, engine="native")

    errors = [raised(lambda vm=vm: vm["main"](W[None]), RunError) for vm in machines(exe).values()]

    notes = [e.__notes__[0].splitlines() for e in errors]
    assert notes[0] == notes[1]
    assert notes[0][1] == "  main, instruction 0: call  inner  in: %0  dst: %1  # lv"
    assert notes[0][2].startswith("  inner, instruction 0: call  vm.builtin.check_tensor_info")
