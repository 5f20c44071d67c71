"""Instructions for a repeated run, and progress messages of a run."""

from collections.abc import Callable
from dataclasses import dataclass

from relax_egraph.egraph.saturation.report import Ban, StopReason


@dataclass(frozen=True, slots=True)
class Halt:
    """The end of a phase with `iteration`; `position` is the phase's index in the schedule."""

    position: int
    iteration: int
    reason: StopReason


@dataclass(frozen=True, slots=True)
class Course:
    """Bans and halts of a repeated run; `one_by_one` applies and reports each rule by itself."""

    bans: tuple[Ban, ...] = ()
    halts: tuple[Halt, ...] = ()
    one_by_one: bool = False


@dataclass(frozen=True, slots=True)
class Progress:
    """The start of an iteration with `nodes`, or of `rule` in it, if rules run one by one.

    `busiest` is the rule that matched most in the iteration before.
    """

    phase: str
    position: int
    iteration: int
    nodes: int
    busiest: str | None = None
    rule: str | None = None


Told = Callable[[Progress], object]
"""A listener, called before each iteration."""
