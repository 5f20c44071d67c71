"""Closures, functions as values and recursion, built and run."""

from typing import Any

import numpy as np
import pytest

from relax_egraph.build import build
from relax_egraph.errors import RunError
from relax_egraph.script import parse
from relax_egraph.vm import VirtualMachine
from tests.support.closures import HIGHER_ORDER, RETURNED
from tests.support.transformed import floats, runs_as_evaluated


def test_a_closure_that_leaves_the_machine_is_called_from_python() -> None:
    vm = VirtualMachine(build(parse(RETURNED)))
    a, b = floats(3), np.arange(6, dtype=np.float32)[::2]

    add = vm["adder"](a)

    np.testing.assert_array_equal(add(b), a + b, strict=True)
    with pytest.raises(RunError) as error:
        add(b.astype(np.float64))
    assert str(error.value) == (
        'adder_add: parameter y: expected R.Tensor((3,), "float32"), got R.Tensor((3,), "float64")'
    )


def test_functions_are_passed_to_functions() -> None:
    result = runs_as_evaluated(HIGHER_ORDER, floats(3), floats(3))

    np.testing.assert_allclose(result, 4 * floats(3) ** 9, rtol=1e-5)


def test_a_recursive_function_may_be_its_own_value() -> None:
    runs_as_evaluated(
        """
@I.ir_module
class Module:
    @R.function
    def apply(
        f: R.Callable((R.Tensor((), "int64"),), R.Tensor((), "int64")), x: R.Tensor((), "int64")
    ) -> R.Tensor((), "int64"):
        y = f(x)
        return y
    @R.function
    def main(k: R.Tensor((), "int64"), step: R.Tensor((), "int64")):
        cls = Module
        @R.function
        def down(x: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
            c = R.greater(x, R.const(0, "int64"))
            if c:
                y = R.subtract(x, step)
                r = cls.apply(down, y)
            else:
                r = x
            return r
        a = down(k)
        b = cls.apply(down, a)
        return b
""",
        np.int64(11),
        np.int64(3),
    )


def test_a_function_made_in_a_branch_knows_the_symbols_of_the_branch() -> None:
    text = """
@R.function
def main(x: R.Tensor("float32", ndim=1), c: R.Tensor((), "bool")):
    m = T.int64()
    if c:
        y = R.match_cast(x, R.Tensor((m,), "float32"))
        @R.function
        def f(z: R.Tensor((m,), "float32")) -> R.Tensor((m,), "float32"):
            a = R.add(z, y)
            return a
        r: R.Tensor("float32", ndim=1) = f(x)
    else:
        r: R.Tensor("float32", ndim=1) = x
    return r
"""

    for flag in (True, False):
        runs_as_evaluated(text, floats(5), np.bool_(flag))


def test_the_result_of_a_closure_is_checked() -> None:
    text = """
@R.function
def main(
    f: R.Callable((R.Tensor(("n",), "float32"),), R.Tensor(("n",), "float32")),
    x: R.Tensor(("n",), "float32"),
):
    y = f(x)
    z = R.add(y, x)
    return z
"""
    vm = VirtualMachine(build(parse(text)))

    def half(x: Any) -> Any:
        return x[::2]

    with pytest.raises(RunError) as error:
        vm["main"](half, floats(4))

    assert str(error.value) == (
        'main: the result of a closure: expected R.Tensor((n,), "float32"), '
        'got R.Tensor((2,), "float32"): dimension 0 is 2, needs n = 4'
    )
    np.testing.assert_array_equal(vm["main"](np.flip, floats(4)), np.flip(floats(4)) + floats(4))


def test_recursion_of_100_000_steps_in_the_last_place_needs_no_depth() -> None:
    text = """
@R.function
def main(count: R.Tensor((), "int64")):
    @R.function
    def down(i: R.Tensor((), "int64"), s: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        c = R.greater(i, R.const(0, "int64"))
        if c:
            j = R.subtract(i, R.const(1, "int64"))
            t = R.add(s, i)
            r = down(j, t)
        else:
            r = s
        return r
    a = down(count, R.const(0, "int64"))
    return a
"""
    vm = VirtualMachine(build(parse(text)), max_depth=10)

    assert vm["main"](np.int64(100_000)) == 5_000_050_000
