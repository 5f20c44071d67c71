"""The report of a run: phases, their stop reasons, matches of each rule, and bans."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class StopReason(StrEnum):
    """The reason for the end of a phase; all but the first lose rewrites, hence only speed."""

    SATURATED = "saturated"
    NODES = "node budget"
    GROWTH = "growth budget"
    TIME = "time budget"
    ITERATIONS = "iterations"
    MEMORY = "out of memory"
    CRASH = "crash"


@dataclass(frozen=True, slots=True)
class Ban:
    """The exclusion of a rule from the rest of the run, from `iteration` of `phase` on.

    With the rule the e-graph grew from `nodes_before` to `nodes_after`, above its bound; ``None``
    if the worker process died.  The run was repeated up to that iteration and went on without the
    rule.  `position` is the phase's index in the schedule.
    """

    rule: str
    phase: str
    position: int
    iteration: int
    nodes_before: int
    nodes_after: int | None

    def __str__(self) -> str:
        grown = f"{self.nodes_before} nodes grew to {self.nodes_after}"
        why = (
            f"from {self.nodes_before} nodes it did not end" if self.nodes_after is None else grown
        )
        return f"{self.rule} is banned from iteration {self.iteration} on: {why}"


@dataclass(frozen=True, slots=True)
class PhaseReport:
    """The report of one phase; `nodes` is the number of operators' nodes at its end.

    `growth` has that number at the start of each iteration.  `matches` counts matches in iterations
    that changed the e-graph.  `busiest` is the rule with the most matches in the last iteration: if
    a budget ended the phase, this rule is to blame.  `sat_out` is the number of iterations for
    which back-off paused a rule.
    """

    name: str
    stop: StopReason
    iterations: int
    nodes: int
    seconds: float
    matches: Mapping[str, int] = field(default_factory=dict[str, int])
    rule_seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    busiest: str | None = None
    sat_out: Mapping[str, int] = field(default_factory=dict[str, int])
    bans: tuple[Ban, ...] = ()
    growth: tuple[int, ...] = ()

    def __str__(self) -> str:
        cut = self.stop is not StopReason.SATURATED
        blame = f" (most matches: {self.busiest})" if cut and self.busiest else ""
        head = (
            f"{self.name}: {self.stop}{blame} after {_count(self.iterations, 'iteration')}, "
            f"{self.nodes} nodes, {self.seconds * 1e3:.0f} ms"
        )
        slow = sorted(self.rule_seconds, key=lambda r: -self.rule_seconds[r])[:_SLOWEST]
        times = [f"{rule} {s * 1e3:.0f} ms" for rule in slow if (s := self.rule_seconds[rule]) > 0]
        waits = [f"{rule} {_count(n, 'iteration')}" for rule, n in self.sat_out.items()]
        return "\n  ".join(
            (
                head,
                *(str(ban) for ban in self.bans),
                *(("backed off: " + ", ".join(waits),) if waits else ()),
                *(("slowest: " + ", ".join(times),) if times else ()),
            )
        )


_SLOWEST = 3


@dataclass(frozen=True, slots=True)
class Report:
    """All phases in order, the seconds of the whole run, and `notes` on its circumstances.

    If the worker process died and the block is not rewritten, a note says why.
    """

    phases: tuple[PhaseReport, ...]
    seconds: float
    notes: tuple[str, ...] = ()

    @property
    def matches(self) -> Mapping[str, int]:
        """The number of matches of each rule over all phases, without rules that did not match."""
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
    def bans(self) -> tuple[Ban, ...]:
        """The bans of all phases, in order."""
        return tuple(ban for phase in self.phases for ban in phase.bans)

    @property
    def nodes(self) -> int:
        """The nodes of operators at the end."""
        return self.phases[-1].nodes if self.phases else 0

    @property
    def stop_reason(self) -> str:
        """``saturated``, or the first phase that was cut short, why, and by which rule."""
        cut = next((p for p in self.phases if p.stop is not StopReason.SATURATED), None)
        banned = f"without {', '.join(ban.rule for ban in self.bans)}" if self.bans else ""
        if cut is None:
            return f"{StopReason.SATURATED} {banned}".strip()
        blame = f", most matches: {cut.busiest}" if cut.busiest else ""
        return f"{cut.stop} (phase {cut.name}{blame}{', ' * bool(banned)}{banned})"

    @property
    def saturated(self) -> bool:
        """Whether every phase ran until nothing changed, with all rules."""
        return not self.bans and all(p.stop is StopReason.SATURATED for p in self.phases)

    def __str__(self) -> str:
        return "\n".join((*map(str, self.phases), *self.notes))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
