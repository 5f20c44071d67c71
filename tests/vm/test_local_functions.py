"""Local functions: they may call themselves, and symbols of a branch are its own."""

import numpy as np
import pytest

from relax_egraph.errors import RunError
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.ir.well_formed import assert_well_formed
from relax_egraph.script import parse
from tests.support.transformed import floats

POWER = """
@R.function
def main(x: R.Tensor((), "int64"), count: R.Tensor((), "int64")):
    @R.function
    def power(i: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        c = R.greater(i, R.const(0, "int64"))
        if c:
            j = R.subtract(i, R.const(1, "int64"))
            less = power(j)
            r = R.multiply(less, x)
        else:
            r = R.const(1, "int64")
        return r
    a = power(count)
    return a
"""


def test_a_local_function_may_call_itself() -> None:
    module = parse(POWER)

    assert_well_formed(module)
    assert evaluate(module, "main", np.int64(3), np.int64(4)) == 81
    assert_structural_equal(parse(module.script()), module)


def test_a_parameter_hides_the_name_of_the_function() -> None:
    module = parse(
        """
@R.function
def main(x: R.Tensor((2,), "float32")):
    @R.function
    def f(f: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        y = R.exp(f)
        return y
    a = f(x)
    return a
"""
    )

    assert_well_formed(module)
    np.testing.assert_array_equal(evaluate(module, "main", floats(2)), np.exp(floats(2)))


BRANCHES = """
@R.function
def main(x: R.Tensor("float32", ndim=1), y: R.Tensor("float32", ndim=1), c: R.Tensor((), "bool")):
    m = T.int64()
    if c:
        a = R.match_cast(x, R.Tensor((m,), "float32"))
        r: R.Tensor("float32", ndim=1) = R.exp(a)
    else:
        r: R.Tensor("float32", ndim=1) = x
    b = R.match_cast(y, R.Tensor((m,), "float32"))
    d = R.zeros(R.shape([m]), dtype="float32")
    return (r, b, d)
"""


def test_a_symbol_that_a_branch_binds_is_bound_anew_after_it() -> None:
    module = parse(BRANCHES)

    _, b, d = evaluate(module, "main", floats(3), floats(2), np.bool_(True))

    assert (b.shape, d.shape) == ((2,), (2,))


def test_a_function_made_in_a_branch_knows_the_symbols_of_the_branch_after_it() -> None:
    module = parse(
        """
@R.function
def main(x: R.Tensor("float32", ndim=1), y: R.Tensor("float32", ndim=1), c: R.Tensor((), "bool")):
    m = T.int64()
    if c:
        a = R.match_cast(x, R.Tensor((m,), "float32"))
        @R.function
        def f(z: R.Tensor((m,), "float32")) -> R.Tensor((m,), "float32"):
            u = R.add(z, a)
            return u
        g = f
    else:
        @R.function
        def h(z: R.Tensor("float32", ndim=1)) -> R.Tensor("float32", ndim=1):
            return z
        g = h
    b = g(y)
    return b
"""
    )

    same = evaluate(module, "main", floats(3), floats(3), np.bool_(True))

    np.testing.assert_array_equal(same, floats(3) + floats(3))
    with pytest.raises(RunError):
        evaluate(module, "main", floats(3), floats(2), np.bool_(True))
