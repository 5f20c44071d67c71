"""How far results are apart, how far they may be, and what a program means in float64."""

from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph.reasons.difference import Allowed, Difference, rounding
from relax_egraph.reasons.running import interpreted, meant

ONES = np.array([1, 2], np.float32)


def test_the_worst_element_is_off_by_the_largest_part_of_what_is_allowed() -> None:
    allowed = Allowed([ONES, np.array([[100.0]])], rtol=0.125, atol=0.25)

    worst = allowed.worst([np.array([1.75, 2.5], np.float32), np.array([[103.0]])])

    assert worst == Difference(0, (0,), "1.0", "1.75", 0.75, 0.375)
    assert worst.exceeds
    assert str(worst) == ("output 0 at [0] is 1.75, as written 1.0: off by 0.75, allowed are 0.375")


def test_half_of_the_digits_and_the_programs_own_rounding_are_allowed() -> None:
    usual = float(np.finfo(np.float32).eps) ** 0.5

    allowed = Allowed([ONES], rounding=[0.001]).worst([ONES]).allowed

    assert allowed == pytest.approx(0.008 + usual * 2 + usual * 1, rel=1e-6)
    assert Allowed([ONES], rtol=0.5, rounding=[9.0]).worst([ONES]).allowed == 1.5
    assert Allowed([np.array([3])]).worst([np.array([3])]).allowed == 0


@pytest.mark.parametrize(
    ("before", "after", "apart"),
    [
        ([np.nan, np.inf], [np.nan, np.inf], 0),
        ([0.0, -0.0], [-0.0, 0.0], 0),
        ([np.nan, 1], [0, 1], np.inf),
        ([np.inf, 1], [-np.inf, 1], np.inf),
        ([1, 1], [1, np.nan], np.inf),
        ([2**62 + 1, 0], [2**62, 0], 1),
        ([True, False], [True, True], 1),
    ],
)
def test_what_is_not_finite_is_equal_or_infinitely_apart(
    before: list[Any], after: list[Any], apart: float
) -> None:
    worst = Allowed([np.array(before)]).worst([np.array(after)])

    assert (worst.apart, worst.exceeds) == (apart, apart > 0)


@pytest.mark.parametrize(
    ("found", "text"),
    [
        ([ONES.astype(np.float64)], "output 0 is float64[2], as written float32[2]"),
        ([ONES[:1]], "output 0 is float32[1], as written float32[2]"),
        ([ONES, ONES], "output 0 is 2 outputs, as written 1 outputs"),
    ],
)
def test_what_is_of_another_type_exceeds(found: list[Any], text: str) -> None:
    worst = Allowed([ONES]).worst(found)

    assert worst.exceeds
    assert str(worst) == f"{text}: off by inf, allowed are 0"


def test_what_is_no_tensor_must_be_equal() -> None:
    allowed = Allowed([(2, 3), 4, np.zeros((0, 2))])

    assert not allowed.worst([(2, 3), 4, np.zeros((0, 2))]).exceeds
    assert allowed.worst([(2, 4), 4, np.zeros((0, 2))]) == Difference(0, (1,), "3", "4", 1.0, 0.0)
    assert Allowed([]).worst([]).exceeds is False


def test_a_program_means_what_it_computes_in_float64() -> None:
    module = rx.parse("""
@R.function
def main(x: R.Tensor(("n",), "float32"), k: R.Tensor(("n",), "int32")):
    with R.dataflow():
        a = R.astype(k, dtype="float16")
        b = R.add(R.astype(a, dtype="float32"), R.const(0.1, "float32"))
        c = R.exp(R.multiply(b, x))
        d = R.full(R.shape(["n"]), R.const(1, "float32"), dtype="float32")
        R.output(c, d)
    return (c, d)
""")
    x, k = np.array([0.3, 0.7], np.float32), np.array([2049, 3], np.int32)

    meaning = meant(module, "main", [x, k])

    assert meaning is not None
    exact = np.exp((k + np.float64(np.float32(0.1))) * x.astype(np.float64))
    np.testing.assert_array_equal(meaning[0], exact)
    np.testing.assert_array_equal(meaning[1], np.ones(2))
    own = interpreted(module, "main", [x, k])
    assert [part.dtype.name for part in own] == ["float32", "float32"]
    off = rounding(own, meaning)
    assert off[0] == np.abs(own[0].astype(np.float64) - exact)[np.isfinite(own[0])].max()
    assert off[1] == 0
