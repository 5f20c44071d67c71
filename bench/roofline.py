"""The roofline of a run: the speed of systems and kernels over their arithmetic intensity.

Williams, Waterman and Patterson, "Roofline: an insightful visual performance model for multicore
architectures" (2009).  The rate of a workload or a kernel is below the machine's: its peak of
multiply-adds, or its bandwidth times the operations for each byte.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bench.limits import Roof
from bench.result import OURS, Result

SEEN = 0.01
"""The minimal share of a kernel in the time of its workload to be shown."""


@dataclass(frozen=True, slots=True)
class Point:
    """`rate` in operations a second, at `intensity` in operations a byte."""

    name: str
    intensity: float
    rate: float


@dataclass(frozen=True, slots=True)
class Subject:
    """A workload: its point on each system, ours first, and those of our kernels."""

    name: str
    systems: tuple[Point, ...]
    kernels: tuple[Point, ...]

    @property
    def ours(self) -> Point:
        """How fast we are."""
        return self.systems[0]

    @property
    def remark(self) -> str:
        """Our rate, relative to the best of the others."""
        rate = f"{self.ours.rate / 1e9:.3g} GFLOP/s"
        others = [p.rate for p in self.systems[1:]]
        return f"{rate}, {self.ours.rate / max(others):.2f}×" if others else rate


@dataclass(frozen=True, slots=True)
class Roofline:
    """The contents of a picture."""

    roofs: tuple[Roof, ...]
    subjects: tuple[Subject, ...]

    @property
    def points(self) -> list[Point]:
        """All points."""
        return [p for s in self.subjects for p in (*s.systems, *s.kernels)]

    @property
    def peak(self) -> Roof:
        """The highest of the level roofs."""
        return max((r for r in self.roofs if r.is_level), key=lambda r: r.rate)


def roofline(roofs: Sequence[Roof], results: Sequence[Result]) -> Roofline:
    """The picture of `results` on one thread, without those of unknown operations.

    The operations of a workload are those of our kernels for it, its bytes the minimum: all systems
    have one intensity.  Kernels have their own.
    """
    subjects = [s for r in results if r.threads == 1 and (s := _subject(r)) is not None]
    return Roofline(tuple(roofs), tuple(subjects))


def _subject(result: Result) -> Subject | None:
    operations = float(sum(k.operations or 0 for k in result.kernels))
    if not operations or not result.nbytes:
        return None
    intensity = operations / result.nbytes
    others = [name for name in result.seconds if name != OURS]
    systems = [Point(s, intensity, operations / result.seconds[s]) for s in (OURS, *others)]
    kernels = [
        Point(k.name, k.operations / k.nbytes, k.operations / k.seconds)
        for k in result.kernels
        if k.operations and k.nbytes and k.seconds > SEEN * result.seconds[OURS]
    ]
    return Subject(result.name, tuple(systems), tuple(kernels))
