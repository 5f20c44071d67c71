"""Constants that are the same bits become one array, in all functions of a module."""

from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph.ir.expr import Call, Constant, Function
from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.ir.walk import bindings_of
from relax_egraph.passes import share_constants

TWO = """
@R.function
def f(x: R.Object):
    gv = R.negative(metadata["relax.expr.Constant"][0])
    return gv

@R.function
def g(x: R.Object):
    gv = R.abs(metadata["relax.expr.Constant"][1])
    return gv
"""

LONG = np.zeros((10, 10), np.float32)
LATE = np.where(np.arange(100) == 99, 1, 0).reshape(10, 10).astype(np.float32)


def arrays(*constants: np.ndarray[Any, Any]) -> int:
    """How many arrays two functions of one constant each have after the pass."""
    module = rx.parse(TWO, constants=constants)

    shared = share_constants(module)

    assert_structural_equal(shared, module)
    functions = [f for f in shared.functions.values() if isinstance(f, Function)]
    values = [b.value for f in functions for b in bindings_of(f.body)]
    operands = [v.args[0] for v in values if isinstance(v, Call)]
    return len({id(operand.data) for operand in operands if isinstance(operand, Constant)})


@pytest.mark.parametrize("constant", [LONG, LATE, LATE.T, LONG[:0], np.float32(np.nan)])
def test_equal_constants_of_two_functions_are_one(constant: np.ndarray[Any, Any]) -> None:
    assert arrays(np.asarray(constant), np.array(constant)) == 1


@pytest.mark.parametrize("other", [-LONG, LATE, LONG[:5], LONG.reshape(100), LONG.astype("int32")])
def test_others_are_not(other: np.ndarray[Any, Any]) -> None:
    assert arrays(LONG, other) == 2
