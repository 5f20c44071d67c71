"""What a run did: phases, why each stopped, and how often each rule matched."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class StopReason(StrEnum):
    """Why a phase ended; all but the first leave rewrites undone, which costs speed only."""

    SATURATED = "saturated"
    NODES = "node budget"
    TIME = "time budget"
    ITERATIONS = "iterations"


@dataclass(frozen=True, slots=True)
class PhaseReport:
    """One phase.  `nodes` are the nodes of operators at its end.

    `matches` counts those of iterations that changed the e-graph.  `busiest` is the rule that
    matched most in the last iteration: where a budget ended the phase, it is the one to blame.
    """

    name: str
    stop: StopReason
    iterations: int
    nodes: int
    seconds: float
    matches: Mapping[str, int]
    rule_seconds: Mapping[str, float]
    busiest: str | None

    def __str__(self) -> str:
        blame = f" (most matches: {self.busiest})" if self._cut and self.busiest else ""
        return (
            f"{self.name}: {self.stop}{blame} after {self.iterations} iterations, "
            f"{self.nodes} nodes, {self.seconds * 1e3:.0f} ms"
        )

    @property
    def _cut(self) -> bool:
        return self.stop is not StopReason.SATURATED


@dataclass(frozen=True, slots=True)
class Report:
    """All phases in order, and the seconds of the whole run."""

    phases: tuple[PhaseReport, ...]
    seconds: float

    @property
    def matches(self) -> Mapping[str, int]:
        """How often each rule matched, over all phases; a rule that did not match is not in it."""
        total: Counter[str] = Counter()
        for phase in self.phases:
            total.update(phase.matches)
        return {rule: count for rule, count in total.items() if count}

    @property
    def rule_seconds(self) -> Mapping[str, float]:
        """The seconds that each rule took to search and apply, in steps of a millisecond."""
        total: dict[str, float] = defaultdict(float)
        for phase in self.phases:
            for rule, seconds in phase.rule_seconds.items():
                total[rule] += seconds
        return dict(total)

    @property
    def nodes(self) -> int:
        """The nodes of operators at the end."""
        return self.phases[-1].nodes if self.phases else 0

    @property
    def stop_reason(self) -> str:
        """``saturated``, or the first phase that was cut short, why, and by which rule."""
        cut = next((p for p in self.phases if p.stop is not StopReason.SATURATED), None)
        if cut is None:
            return str(StopReason.SATURATED)
        blame = f", most matches: {cut.busiest}" if cut.busiest else ""
        return f"{cut.stop} (phase {cut.name}{blame})"

    @property
    def saturated(self) -> bool:
        """Whether every phase found all there is to find."""
        return all(phase.stop is StopReason.SATURATED for phase in self.phases)

    def __str__(self) -> str:
        return "\n".join(map(str, self.phases))
