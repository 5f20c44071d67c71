"""Recursion: in the place of a return it has no depth, elsewhere it ends with an error."""

import operator
from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph.errors import RunError
from relax_egraph.vm import ExecBuilder, Executable
from relax_egraph.vm.machine import MAX_DEPTH, Engine

ENGINES: tuple[Engine, ...] = ("interpreter", "auto")
FAR = 100_000

LOOPS = """
@I.ir_module
class Module:
    @R.function
    def count(i: R.Tensor((), "int64"), x: R.Tensor(("n",), "float32")):
        cls = Module
        more = R.greater(i, R.const(0, "int64"))
        if more:
            r = cls.count(R.subtract(i, R.const(1, "int64")), R.add(x, R.const(1, "float32")))
        else:
            r = x
        return r

    @R.function
    def even(i: R.Tensor((), "int64")) -> R.Tensor((), "bool"):
        cls = Module
        more = R.greater(i, R.const(0, "int64"))
        if more:
            r = cls.odd(R.subtract(i, R.const(1, "int64")))
        else:
            r = R.const(True, "bool")
        return r

    @R.function
    def odd(i: R.Tensor((), "int64")) -> R.Tensor((), "bool"):
        cls = Module
        more = R.greater(i, R.const(0, "int64"))
        if more:
            r = cls.even(R.subtract(i, R.const(1, "int64")))
        else:
            r = R.const(False, "bool")
        return r

    @R.function
    def total(i: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        cls = Module
        more = R.greater(i, R.const(0, "int64"))
        if more:
            r = R.add(i, cls.total(R.subtract(i, R.const(1, "int64"))))
        else:
            r = i
        return r

    @R.function
    def here(i: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        cls = Module
        more = R.greater(i, R.const(0, "int64"))
        if more:
            r = R.add(i, cls.there(R.subtract(i, R.const(1, "int64"))))
        else:
            r = i
        return r

    @R.function
    def there(i: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        cls = Module
        more = R.greater(i, R.const(0, "int64"))
        if more:
            r = R.multiply(i, cls.here(R.subtract(i, R.const(1, "int64"))))
        else:
            r = i
        return r
"""


@pytest.fixture(scope="module", params=ENGINES)
def vm(request: pytest.FixtureRequest) -> rx.VirtualMachine:
    return rx.VirtualMachine(rx.build(rx.parse(LOOPS)), engine=request.param)


def too_deep(function: Any, *args: Any) -> str:
    with pytest.raises(RunError) as error:
        function(*args)
    return str(error.value)


MESSAGE = f"more than {MAX_DEPTH} calls within calls"


def test_a_loop_of_tail_calls(vm: rx.VirtualMachine) -> None:
    x = np.arange(3, dtype=np.float32)

    result = vm["count"](np.array(FAR), x)

    np.testing.assert_array_equal(result, x + FAR)


@pytest.mark.parametrize("turns", [0, 1, FAR])
def test_functions_that_end_by_calling_each_other(vm: rx.VirtualMachine, turns: int) -> None:
    assert bool(vm["even"](np.array(turns))) == (turns % 2 == 0)
    assert bool(vm["odd"](np.array(turns))) == (turns % 2 == 1)


@pytest.mark.parametrize("name", ["total", "here"])
def test_calls_that_wait_for_calls_end_with_an_error(vm: rx.VirtualMachine, name: str) -> None:
    message = too_deep(vm[name], np.array(FAR))

    assert message == MESSAGE
    assert vm["total"](np.array(MAX_DEPTH // 2)) == MAX_DEPTH // 2 * (MAX_DEPTH // 2 + 1) // 2
    assert vm["here"](np.array(3)) == 3 + 2 * (1 + 0)


def closures(*, tail: bool) -> Executable:
    """``main(n)`` calls a closure that gets itself, `n` times; what it returns is 7."""
    ib = ExecBuilder()
    n, itself, rest, closure, result = map(ib.r, range(5))
    with ib.function("down", 2, ["n", "itself"], private=True):
        zero = ib.label()
        ib.emit_if(n, zero)
        ib.emit_call("sub", [n, 1], dst=rest)
        ib.emit_call("vm.builtin.make_closure", [itself, itself], dst=closure)
        ib.emit_call("vm.builtin.invoke_closure", [closure, rest], dst=result)
        if not tail:
            ib.emit_call("sub", [result, 0], dst=result)
        ib.emit_ret(result)
        ib.place(zero)
        ib.emit_ret(ib.imm(7))
    with ib.function("main", 1, ["n"]):
        ib.emit_call("down", [ib.r(0), ib.f("down")], dst=ib.r(1))
        ib.emit_ret(ib.r(1))
    return ib.get()


@pytest.mark.parametrize("engine", ENGINES)
def test_closures_in_the_place_of_a_return(engine: Engine) -> None:
    vm = rx.VirtualMachine(closures(tail=True), {"sub": operator.sub}, engine=engine)

    assert vm["main"](FAR) == 7


@pytest.mark.parametrize("engine", ENGINES)
def test_closures_within_closures_end_with_an_error(engine: Engine) -> None:
    vm = rx.VirtualMachine(closures(tail=False), {"sub": operator.sub}, engine=engine)

    assert too_deep(vm["main"], FAR) == MESSAGE
    assert vm["main"](100) == 7


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("most", [0, 1, 100])
def test_the_user_says_how_deep_calls_may_be(engine: Engine, most: int) -> None:
    vm = rx.VirtualMachine(rx.build(rx.parse(LOOPS)), engine=engine, max_depth=most)

    assert vm["total"](np.array(most)) == most * (most + 1) // 2
    assert too_deep(vm["total"], np.array(most + 1)) == f"more than {most} calls within calls"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_value_nested_deeper_than_python_goes_is_an_error(engine: Engine) -> None:
    vm = rx.VirtualMachine(rx.build(rx.parse(LOOPS)), engine=engine)
    nested: Any = ()
    for _ in range(FAR):
        nested = (nested,)
    endless: list[Any] = []
    endless.append(endless)

    for value in (nested, endless):
        assert too_deep(vm["total"], value) == "total: an argument is nested too deeply"
    assert vm["total"](np.array(3)) == 6
