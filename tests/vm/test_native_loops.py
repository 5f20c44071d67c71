"""Loops as native programs: jumps back, and functions that return what they call themselves for."""

import signal
from types import FrameType
from typing import Any

import numpy as np
import pytest

from relax_egraph import VirtualMachine, build, parse
from relax_egraph.errors import RunError
from relax_egraph.vm import ExecBuilder
from relax_egraph.vm.bytecode import Operand
from relax_egraph.vm.machine import Engine
from tests.support.native import W, machines, outcome, with_kernels

ENGINES: tuple[Engine, ...] = ("interpreter", "native")

GROWING = """
@I.ir_module
class Module:
    @R.function
    def main(
        x: R.Tensor(("n", 4), "float32"), i: R.Tensor((), "int64"), k: R.Tensor((), "int64")
    ) -> R.Tensor(dtype="float32", ndim=2):
        cls = Module
        c = R.less(i, k)
        if c:
            y = R.concat((x, x), axis=0)
            r = cls.main(y, R.add(i, R.const(1, "int64")), k)
        else:
            r = x
        return r
"""
"""Doubles the rows of `x` until `i` is `k`."""

TUPLES = """
@I.ir_module
class Module:
    @R.function
    def main(
        p: R.Tuple(R.Tensor((4,), "float32"), R.Tuple(R.Tensor((), "int64"), R.Shape(["n"]))),
        k: R.Tensor((), "int64"),
    ) -> R.Tensor((4,), "float32"):
        cls = Module
        x = p[0]
        q = p[1]
        i = q[0]
        s = q[1]
        c = R.less(i, k)
        if c:
            y = R.add(x, x)
            r = cls.main((y, (R.add(i, R.const(1, "int64")), s)), k)
        else:
            r = x
        return r
"""


def int64(value: int) -> Any:
    return np.array(value, np.int64)


class Code(ExecBuilder):
    """A builder of functions over vectors of n elements; n is in slot 0 of the heap, 4·n in 1."""

    def begin(self, params: int, *, count: bool) -> None:
        """Parameters are vectors; with a `count` the last one is a number, and goes to slot 2."""
        self.heap = self.r(params)
        self.next = params + 1
        self.builtin("alloc_shape_heap", 3, dst=self.heap)
        for k in range(params - count):
            pattern = "n == @0" if k else "n -> @0"
            self.builtin("check_tensor_info", self.r(k), f"x{k}", "t", 1, "float32")
            self.builtin("match_shape", self.r(k), self.heap, f"x{k}", "t", pattern)
        if count:
            self.builtin("match_prim", self.r(params - 1), self.heap, "i", "p", "i -> @2")
        self.builtin("compute_shapes", self.heap, 1, "@0 * 4")

    def new(self) -> Operand:
        self.next += 1
        return self.r(self.next - 1)

    def builtin(self, name: str, *args: Operand | int | str, dst: Operand | None = None) -> Operand:
        target = self.new() if dst is None else dst
        self.emit_call(f"vm.builtin.{name}", list(args), target)
        return target

    def sum(self, a: Operand, b: Operand) -> Operand:
        """A new vector, ``a + b``."""
        storage = self.builtin(
            "alloc_storage", self.vm_state(), self.builtin("load_prim", self.heap, 1)
        )
        shape = self.builtin("make_shape", self.heap, "@0")
        result = self.builtin("alloc_tensor", storage, 0, shape, "float32")
        self.emit_call("add", [a, b, result, self.builtin("load_prim", self.heap, 0)])
        return result

    def is_at_most(self, slot: int, bound: int) -> Operand:
        """Whether what is in `slot` is at most `bound`."""
        number = self.builtin("load_prim", self.heap, slot)
        return self.builtin("read_if_cond", self.builtin("prim_less_equal", number, bound))

    def less_one(self) -> Operand:
        """The number that is counted, less one."""
        self.builtin("compute_shapes", self.heap, 2, "@2 - 1")
        return self.builtin("load_prim", self.heap, 2)


# --- results --------------------------------------------------------------------------


@pytest.mark.parametrize("turns", [0, 1, 2, 7])
def test_what_a_loop_carries_may_grow(turns: int) -> None:
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    main = VirtualMachine(build(parse(GROWING)), engine="native")["main"]

    result = main(x, int64(0), int64(turns))

    np.testing.assert_array_equal(result, np.tile(x, (2**turns, 1)))
    assert (result is x) == (turns == 0)


@pytest.mark.parametrize("turns", [0, 1, 5])
def test_tuples_and_shapes_are_given_from_turn_to_turn(turns: int) -> None:
    main = VirtualMachine(build(parse(TUPLES)), engine="native")["main"]

    result = main((W, (int64(0), (3,))), int64(turns))

    np.testing.assert_array_equal(result, W * 2**turns)


def fibonacci() -> Code:
    """``main(a, b, i)``: `i` times ``a, b = b, a + b``, then `a`."""
    code = Code()
    with code.function("main", 3, ["a", "b", "i"]):
        code.begin(3, count=True)
        goes_on = code.label()
        code.emit_if(code.is_at_most(2, 0), goes_on)
        code.emit_ret(code.r(0))
        code.place(goes_on)
        following = code.sum(code.r(0), code.r(1))
        result = code.new()
        code.emit_call("main", [code.r(1), following, code.less_one()], result)
        code.emit_ret(result)
    return code


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 10])
def test_values_may_take_turns(turns: int) -> None:
    """After no turn and after one, what is returned is an argument, and the same object."""
    executable = with_kernels(fibonacci())
    a, b = W, W + 1
    expected = [a, b]
    for _ in range(turns):
        expected.append(expected[-2] + expected[-1])

    results = [VirtualMachine(executable, engine=e)["main"](a, b, turns) for e in ENGINES]

    for result in results:
        np.testing.assert_array_equal(result, expected[turns])
    assert [r is a for r in results] == [turns == 0] * 2
    assert [r is b for r in results] == [turns == 1] * 2


@pytest.mark.parametrize("is_tested_first", [True, False])
def test_jumps_back_are_loops(is_tested_first: bool) -> None:
    code = Code()
    with code.function("main", 1, ["x"]):
        code.begin(1, count=False)
        y, again, end = code.new(), code.label(), code.label()
        code.builtin("copy", code.r(0), dst=y)
        code.builtin("compute_shapes", code.heap, 2, "6")
        code.place(again)
        if is_tested_first:
            code.builtin("compute_shapes", code.heap, 1, "1 - @2")
            code.emit_if(code.is_at_most(1, 0), end)
            code.builtin("compute_shapes", code.heap, 1, "@0 * 4")
        code.builtin("copy", code.sum(y, code.r(0)), dst=y)
        less = code.less_one()
        if is_tested_first:
            code.emit_goto(again)
        else:
            code.emit_if(code.is_at_most(2, 0), again)
        code.place(end)
        code.emit_ret(code.builtin("make_tuple", y, less) if not is_tested_first else y)
    main = VirtualMachine(with_kernels(code), engine="native")["main"]

    result = main(W)

    y = result if is_tested_first else result[0]
    np.testing.assert_array_equal(y, 7 * W)
    assert is_tested_first or result[1] == 0


# --- errors ---------------------------------------------------------------------------


def test_an_error_in_some_turn_is_the_interpreters() -> None:
    """A division by zero, in the turn in which `i` is 3."""
    code = Code()
    with code.function("main", 2, ["x", "i"]):
        code.begin(2, count=True)
        goes_on = code.label()
        code.emit_if(code.is_at_most(2, 0), goes_on)
        code.emit_ret(code.r(0))
        code.place(goes_on)
        y = code.sum(code.r(0), code.r(0))
        code.builtin("compute_shapes", code.heap, 1, "@0 * 4 // (@2 - 3)")
        following = code.less_one()
        result = code.new()
        code.emit_call("main", [y, following], result)
        code.emit_ret(result)
    vms = machines(with_kernels(code))

    for turns in (2, 5):
        expected, found = (outcome(vm, W, turns) for vm in vms.values())
        assert found == expected
    assert found[0] is RunError


@pytest.mark.parametrize("engine", ENGINES)
def test_a_loop_of_many_turns_has_no_depth(engine: Engine) -> None:
    vm = VirtualMachine(with_kernels(fibonacci()), engine=engine, max_depth=1)

    result = vm["main"](np.zeros(1, np.float32), np.zeros(1, np.float32), 100_000)

    assert result == 0


def deep() -> Code:
    """``main(x, i)``: ``main(x, i - 1) + x``, or `x` of 0."""
    code = Code()
    with code.function("main", 2, ["x", "i"]):
        code.begin(2, count=True)
        goes_on = code.label()
        code.emit_if(code.is_at_most(2, 0), goes_on)
        code.emit_ret(code.r(0))
        code.place(goes_on)
        result = code.new()
        code.emit_call("main", [code.r(0), code.less_one()], result)
        code.emit_ret(code.sum(result, code.r(0)))
    return code


def test_recursion_is_interpreted_and_bounded() -> None:
    vms = machines(with_kernels(deep()))

    results = [vm["main"](W, 1000) for vm in vms.values()]
    outcomes = [outcome(vm, W, 100_000) for vm in vms.values()]

    np.testing.assert_array_equal(results, [1001 * W] * 2)
    assert outcomes[0] == outcomes[1]
    assert outcomes[0][:2] == (RunError, "more than 10000 calls within calls")


ENDLESS = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32"), k: R.Tensor((), "int64")) -> R.Tensor((4,), "float32"):
        cls = Module
        c = R.less(R.const(0, "int64"), k)
        if c:
            y = R.add(x, x)
            r = cls.main(y, k)
        else:
            r = x
        return r
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_a_loop_without_an_end_can_be_interrupted(engine: Engine) -> None:
    main = VirtualMachine(build(parse(ENDLESS)), engine=engine)["main"]

    def wake(number: int, frame: FrameType | None) -> None:
        raise TimeoutError("enough")

    before = signal.signal(signal.SIGALRM, wake)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(TimeoutError, match="enough"):
            main(W, int64(1))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

    np.testing.assert_array_equal(main(W, int64(0)), W)


# --- closures -------------------------------------------------------------------------


def test_calls_of_closures_are_followed() -> None:
    code = Code()
    with code.function("both", 3, private=True):
        code.begin(3, count=False)
        code.emit_ret(code.sum(code.sum(code.r(0), code.r(1)), code.r(2)))
    with code.function("main", 2, ["x", "y"]):
        code.next = 2
        inner = code.builtin("make_closure", code.f("both"), code.r(1))
        outer = code.builtin("make_closure", inner, code.r(1))
        code.emit_ret(code.builtin("invoke_closure", outer, code.r(0)))

    main = VirtualMachine(with_kernels(code), engine="native")["main"]

    np.testing.assert_array_equal(main(W, W + 1), W + 2 * (W + 1))
