"""What a run is told before it begins, and what it tells."""

from collections.abc import Callable
from dataclasses import dataclass

from relax_egraph.egraph.saturation.report import Ban, StopReason


@dataclass(frozen=True, slots=True)
class Halt:
    """Why a phase ends with `iteration`; `position` is that of the phase in the schedule."""

    position: int
    iteration: int
    reason: StopReason


@dataclass(frozen=True, slots=True)
class Course:
    """What a run that is repeated does differently; `one_by_one` tells of each rule as it runs."""

    bans: tuple[Ban, ...] = ()
    halts: tuple[Halt, ...] = ()
    one_by_one: bool = False


@dataclass(frozen=True, slots=True)
class Progress:
    """An iteration begins with `nodes`, or `rule` in it, if rules run one by one.

    `busiest` matched most in the iteration before.
    """

    phase: str
    position: int
    iteration: int
    nodes: int
    busiest: str | None = None
    rule: str | None = None


Told = Callable[[Progress], object]
