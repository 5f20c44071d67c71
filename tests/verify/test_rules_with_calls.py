"""The check of rules with calls: the registered functions run on instances."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import relax_egraph as rx
from relax_egraph.vm.registry import unregister_func

Array = npt.NDArray[Any]


@pytest.fixture(autouse=True)
def functions() -> Iterator[None]:
    def double(x: Array, out: Array) -> None:
        np.add(x, x, out=out)

    def dgemm(x: Array, w: Array, out: Array) -> None:
        if x.dtype != np.float64:
            raise TypeError(f"dgemm multiplies float64, not {x.dtype}")
        np.matmul(x, w, out=out)

    def relu(x: Array) -> Array:
        return np.maximum(x, x.dtype.type(0))

    known = {"test.double": double, "test.dgemm": dgemm, "test.relu": relu}
    for name, function in known.items():
        rx.register_func(name)(function)
    yield
    for name in known:
        unregister_func(name)


def verdict(rule: str) -> str:
    (one,) = rx.rules.check(rule, trials=5, processes=1)
    return str(one)


RIGHT = [
    '(rewrite (R.add x x) (R.call_dps_packed "test.double" (vec-of x)) :demand)',
    '(rewrite (R.add x x) (R.call_dps_packed "test.double" (vec-of x)))',
    '(rewrite (R.call_tir "test.double" (vec-of x)) (R.add x x))',
    '(rewrite (R.nn.relu x) (R.call_pure_packed "test.relu" (vec-of x)))',
]


@pytest.mark.parametrize("rule", RIGHT)
def test_a_rule_with_a_call_is_checked_by_the_registered_function(rule: str) -> None:
    assert verdict(rule).startswith("<rules>:1 (<rules>:1:1): exact; ")


def test_a_rule_that_calls_another_function_is_wrong() -> None:
    text = verdict('(rewrite (R.multiply x x) (R.call_dps_packed "test.double" (vec-of x)))')

    assert text.startswith("<rules>:1 (<rules>:1:1): unsound; ")


def test_a_rule_for_a_function_of_one_dtype_needs_a_premise() -> None:
    call = '(R.call_dps_packed "test.dgemm" (vec-of x w))'
    matrices = '(= 2 (rank-of x)) (= 2 (rank-of w)) (= "float64" (dtype-of x))'

    wrong = verdict(f"; float: reassociates\n(rewrite (R.matmul x w) {call})")
    right = verdict(f"; float: reassociates\n(rewrite (R.matmul x w) {call} :when ({matrices}))")

    assert "unsound" in wrong or "conditional" in wrong
    assert right.startswith(("<rules>:2 (<rules>:2:1): exact", "<rules>:2 (<rules>:2:1): reass"))


def test_a_rule_that_calls_an_unknown_function_is_not_checked() -> None:
    (one,) = rx.rules.check('(rewrite (R.exp x) (R.call_dps_packed "test.exp" (vec-of x)))')

    assert not one.sound
    assert str(one) == (
        "<rules>:1 (<rules>:1:1): not checked: no meaning is registered for test.exp"
    )
