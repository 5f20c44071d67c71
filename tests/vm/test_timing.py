"""How long a function takes as a whole."""

import math
from typing import Any

import pytest

from relax_egraph.vm import ExecBuilder, VirtualMachine
from relax_egraph.vm.timing import Timing, duration


def counting() -> tuple[VirtualMachine, list[Any]]:
    """A machine whose ``main`` calls back, and the arguments it was called with."""
    seen: list[Any] = []
    ib = ExecBuilder()
    with ib.function("main", 1, ["x"]):
        ib.emit_call("see", [ib.r(0)])
        ib.emit_ret(ib.r(0))
    return VirtualMachine(ib.get(), {"see": seen.append}), seen


def test_a_function_is_called_as_often_as_is_said_and_once_before() -> None:
    vm, seen = counting()

    timing = vm.time_evaluator("main", number=4, repeat=3)(x="given")

    assert seen == ["given"] * (1 + 3 * 4)
    assert (len(timing.results), timing.number) == (3, 4)
    assert all(0 < seconds < 1 for seconds in timing.results)


def test_a_measurement_takes_as_long_as_it_is_to() -> None:
    vm, seen = counting()

    timing = vm.time_evaluator("main", number=1, repeat=2, min_repeat_ms=2)(1)

    assert timing.number > 1
    assert all(seconds * timing.number >= 2e-3 for seconds in timing.results)
    assert len(seen) >= 1 + 2 * timing.number


def test_a_timing_says_what_came_of_it() -> None:
    timing = Timing((4e-6, 1e-6, 1e-6, 2e-6), 100)

    figures = timing.mean, timing.median, timing.min, timing.max, timing.std

    assert figures == pytest.approx((2e-6, 1.5e-6, 1e-6, 4e-6, math.sqrt(1.5) * 1e-6))
    assert str(timing) == (
        "mean 2 µs, median 1.5 µs, min 1 µs, max 4 µs, std 1.22 µs (4 × 100 calls)"
    )


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 ns"), (2.5e-8, "25 ns"), (9.996e-7, "1 µs"), (0.01234, "12.3 ms"), (61.5, "61.5 s")],
)
def test_a_duration_has_the_unit_that_suits_it(seconds: float, text: str) -> None:
    assert duration(seconds) == text
