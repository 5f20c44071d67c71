"""A call that fails says where, and the machine goes on: in both engines."""

import gc
import re
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph.errors import RunError
from relax_egraph.vm.machine import Engine

ENGINES: tuple[Engine, ...] = ("interpreter", "auto")

NESTED = """
@I.ir_module
class Module:
    @R.function(private=True, pure=False)
    def inner(h: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        half = R.multiply(h, R.const(0.5, "float32"))
        checked = R.call_packed("user.check", half, sinfo_args=R.Tensor("float32", ndim=1))
        cast = R.match_cast(checked, R.Tensor((n,), "float32"))
        return R.add(cast, half)

    @R.function(private=True, pure=False)
    def outer(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        cls = Module
        y = cls.inner(x)
        z = cls.inner(y)
        return R.add(y, z)

    @R.function(pure=False)
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        cls = Module
        total = cls.outer(x)
        return R.negative(total)
"""
"""``main(x)`` is ``-2 * x``, where ``user.check`` returns what it is given."""

STACK = """\
virtual machine stack, innermost last:
  main, instruction _: call  outer  in: %_  dst: %_  # total (<script>:21:17)
  outer, instruction _: call  inner  in: %_  dst: %_  # y (<script>:14:13)
  inner, instruction _: call  user.check  in: %_  dst: %_  # checked (<script>:7:19)"""
"""What an exception says; `outer` is called once, and stays a function, for it may refuse."""


def without_numbers(error: BaseException) -> list[str]:
    """The notes on `error`; registers and instructions are the compiler's to choose."""
    return [re.sub(r"(%|instruction )\d+", r"\1_", note) for note in error.__notes__]


def machine(engine: Engine, check: Callable[[Any], Any]) -> rx.VirtualMachine:
    return rx.VirtualMachine(rx.build(rx.parse(NESTED)), {"user.check": check}, engine=engine)


def works(vm: rx.VirtualMachine) -> None:
    x = np.array([1, 2], np.float32)
    np.testing.assert_array_equal(vm["main"](x), -2 * x)


def positive(x: Any) -> Any:
    if x[0] < 0:
        raise ArithmeticError("a negative half")
    return x


@pytest.mark.parametrize("engine", ENGINES)
def test_an_exception_of_a_packed_function_arrives_with_the_stack(engine: Engine) -> None:
    vm = machine(engine, positive)

    with pytest.raises(ArithmeticError) as error:
        vm["main"](np.array([-2, 4], np.float32))

    assert error.value.args == ("a negative half",)
    assert without_numbers(error.value) == [STACK]
    works(vm)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError])
def test_what_is_no_usual_exception_arrives_too(engine: Engine, raised: Any) -> None:
    fail = [True]

    def check(x: Any) -> Any:
        if fail:
            raise raised
        return x

    vm = machine(engine, check)

    with pytest.raises(raised):
        vm["main"](np.ones(2, np.float32))

    fail.clear()
    works(vm)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_packed_function_that_breaks_its_promise_is_an_error(engine: Engine) -> None:
    answers: list[Any] = []

    def check(x: Any) -> Any:
        return answers.pop() if answers else x

    vm = machine(engine, check)
    messages: list[str] = []
    for wrong in (None, np.ones(2), np.ones((2, 1)), np.ones(3, np.float32), [1.0, 2], "text", vm):
        answers.append(wrong)
        with pytest.raises(RunError) as error:
            vm["main"](np.ones(2, np.float32))
        messages.append(str(error.value))
        works(vm)

    result = "inner: the result of 'user.check': expected R.Tensor(dtype=\"float32\", ndim=1), got"
    assert messages == [
        f"{result} None",
        f'{result} R.Tensor((2,), "float64")',
        f'{result} R.Tensor((2, 1), "float64")',
        'inner: match_cast cast: expected R.Tensor((n,), "float32"), got R.Tensor((3,), "float32"):'
        " dimension 0 is 3, needs n = 2",
        f"{result} R.Tuple(1.0, 2)",
        f"{result} an object of type str",
        f"{result} an object of type VirtualMachine",
    ]


@pytest.mark.parametrize("engine", ENGINES)
def test_after_a_thousand_failures_the_machine_works(engine: Engine) -> None:
    vm = machine(engine, positive)
    for turn in range(1000):
        with pytest.raises((RunError, ArithmeticError, TypeError)):
            vm["main"](*[[np.full(turn % 7 + 1, -1, np.float32)], [], [3], ["x", "y"]][turn % 4])

    works(vm)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_machine_may_be_called_from_what_it_calls(engine: Engine) -> None:
    depth = [0]

    def check(x: Any) -> Any:
        if depth[0] == 3:
            return x
        depth[0] += 1
        vm["main"](x)
        depth[0] -= 1
        return x

    vm = machine(engine, check)

    works(vm)


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Garbage of other tests is not finalized within, where no frame is left to do that in."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize("engine", ENGINES)
def test_a_machine_that_calls_itself_without_end_is_an_error(engine: Engine) -> None:
    endless = [True]

    def check(x: Any) -> Any:
        return vm["main"](x) if endless else x

    vm = machine(engine, check)
    with pytest.raises((RecursionError, RunError)):
        vm["main"](np.ones(2, np.float32))

    endless.clear()
    works(vm)


ENDLESS = """
@I.ir_module
class Module:
    @R.function
    def main(i: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        cls = Module
        more = R.greater(i, R.const(0, "int64"))
        if more:
            r = cls.main(i)
        else:
            r = i
        return r
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer that interrupts")
@pytest.mark.parametrize("engine", ENGINES)
def test_a_loop_without_end_is_interrupted(engine: Engine) -> None:
    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    vm = rx.VirtualMachine(rx.build(rx.parse(ENDLESS)), engine=engine)
    vm["main"](np.array(0))
    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with pytest.raises(KeyboardInterrupt):
            vm["main"](np.array(1))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

    assert vm["main"](np.array(-3)) == -3


@pytest.mark.parametrize("engine", ENGINES)
def test_an_exception_in_one_thread_is_not_seen_in_others(engine: Engine) -> None:
    vm = machine(engine, positive)
    wrong: list[object] = []

    def work(sign: int) -> None:
        x = np.array([sign, 2], np.float32)
        for _ in range(200):
            try:
                result = vm["main"](x)
            except ArithmeticError as error:
                if sign > 0 or without_numbers(error) != [STACK]:
                    wrong.append(error)
            else:
                if sign < 0 or not np.array_equal(result, -2 * x):
                    wrong.append(result)

    threads = [threading.Thread(target=work, args=(sign,)) for sign in (-1, 1, -1, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert not wrong
