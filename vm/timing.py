"""Timing of a function: repeated measurements of many calls in a row."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import repeat as times
from typing import Any

_GROWTH = 1.3
"""The factor by which a measurement that was too short increases its calls."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one call: several measurements, each the mean of `number` calls in a row."""

    results: tuple[float, ...]
    number: int

    @property
    def mean(self) -> float:
        """The mean of the results."""
        return statistics.fmean(self.results)

    @property
    def median(self) -> float:
        """The median of the results."""
        return statistics.median(self.results)

    @property
    def min(self) -> float:
        """The least of the results, which other programs disturbed least."""
        return min(self.results)

    @property
    def max(self) -> float:
        """The largest of the results."""
        return max(self.results)

    @property
    def std(self) -> float:
        """The standard deviation of the results."""
        return statistics.pstdev(self.results)

    def __str__(self) -> str:
        figures = ("mean", "median", "min", "max", "std")
        written = ", ".join(f"{name} {duration(getattr(self, name))}" for name in figures)
        return f"{written} ({len(self.results)} × {self.number} calls)"


def duration(seconds: float) -> str:
    """Seconds with three digits, in a suitable unit."""
    rounded = float(f"{seconds:.3g}")
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if rounded >= size:
            return f"{rounded / size:.3g} {unit}"
    return f"{rounded / 1e-9:.3g} ns"


def measure(call: Callable[[], Any], number: int, repeat: int, min_repeat_ms: float) -> Timing:
    """Time `call` in `repeat` measurements, after one call as a warm-up.

    Each measurement is `number` calls in a row, or as many as take `min_repeat_ms`.
    """
    call()
    results: list[float] = []
    while len(results) < repeat:
        seconds = _seconds(call, number)
        if seconds * 1e3 < min_repeat_ms:
            enough = _GROWTH * number * min_repeat_ms / max(seconds * 1e3, 1e-6)
            number, results = max(number + 1, min(int(enough), number * 100)), []
        else:
            results.append(seconds / number)
    return Timing(tuple(results), number)


def _seconds(call: Callable[[], Any], number: int) -> float:
    begin = time.perf_counter()
    for _ in times(None, number):
        call()
    return time.perf_counter() - begin
