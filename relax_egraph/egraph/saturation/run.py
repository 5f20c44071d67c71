"""One run of a schedule on an e-graph.

In each iteration all rules of the phase match the same e-graph; then all facts are deduced and
checked.  A phase ends when nothing changes or a bound is reached.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from relax_egraph.egraph.bindings import EGraph
from relax_egraph.egraph.commands import Command, run, run_text
from relax_egraph.egraph.recording.blame import blamed
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.saturation.backoff import BackOff
from relax_egraph.egraph.saturation.conflict import find_conflict
from relax_egraph.egraph.saturation.course import Course, Halt, Progress, Told
from relax_egraph.egraph.saturation.deduction import DEDUCE, bounded, deduced
from relax_egraph.egraph.saturation.measure import nodes_of
from relax_egraph.egraph.saturation.report import Ban, PhaseReport, StopReason
from relax_egraph.egraph.saturation.schedule import OVERSTEP, Budget, Phase, Schedule
from relax_egraph.egraph.view import View
from relax_egraph.errors import SaturationError

Watch = Callable[[Phase, int, Sequence[str]], object]

_ROWS_PER_NODE = 30
"""The most rows of facts and helper relations, for each node of the node budget."""

_SMALL, _SMALL_GROWTH = 1_000, 10
"""Bounds of a small e-graph: in nodes, and as a factor of the nodes at the start of the phase."""

_MOST_BANS = 16
"""The most rules that can be banned from a run, which is repeated for each."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run on `egraph`, up to `deadline`; `told` is called before each iteration.

    `watch` is called before the rules of a phase are applied, with the phase, the iteration and the
    names of the book's rules.  It can search for their matches, and must not change them.  If the
    run is `counted`, egglog adds the iterations of the phases to its statistics, which grow as long
    as the e-graph lives.
    """

    egraph: EGraph
    view: View
    book: RuleBook
    budget: Budget
    course: Course
    deadline: float
    told: Told
    watch: Watch | None = None
    counted: bool = False

    def schedule(self, schedule: Schedule) -> tuple[PhaseReport, ...] | Course:
        """Run all phases; returns a course for a new run if the e-graph outgrows its bounds.

        Raises `SaturationError` if a rule is unsound or fails, or the view is ill-typed.
        """
        reports: list[PhaseReport] = []
        sizes = deduced(self.egraph, run_text(self.egraph, DEDUCE))
        if conflict := find_conflict(self.egraph, sizes):
            raise SaturationError(f"the block is ill-typed: it {conflict}")
        bounded(self.egraph)
        for position, phase in enumerate(schedule):
            phase_run = _PhaseRun(self, phase, position, sizes)
            report = phase_run.until_it_stops()
            if isinstance(report, Course):
                return report
            reports.append(report)
            sizes = phase_run.sizes
        return tuple(reports)


@dataclass(frozen=True, slots=True)
class _Iteration:
    """The number of nodes at the start of an iteration, and the matches of each rule in it."""

    nodes: int
    matches: Counter[str]


class _PhaseRun:
    """The state of a phase that starts with tables of `sizes`; iterations are counted from 1."""

    def __init__(self, run: Run, phase: Phase, position: int, sizes: Mapping[str, int]) -> None:
        self.run, self.phase, self.position, self.sizes = run, phase, position, sizes
        self.nodes = nodes_of(sizes)
        self.begin = perf_counter()
        self.rules = [r for r in run.book.rewrites if r.ruleset in phase.rulesets]
        self.names = [rule.name for rule in self.rules]
        self.rule_of = {name: rule.name for rule in self.rules for name in rule.reported}
        self.most_nodes = run.budget.nodes if phase.nodes is None else phase.nodes
        self.most_growth = phase.growth * max(1, self.nodes)
        self.back_off = BackOff(phase)
        self.matches = Counter[str]()
        self.seconds = Counter[str]()
        self.history: list[_Iteration] = []
        self.busiest: str | None = None
        self._steps: dict[tuple[str, ...], list[Command]] = {}

    def until_it_stops(self) -> PhaseReport | Course:
        stop: StopReason | None = None
        while stop is None:
            updated = self._iterate()
            if outgrown := self._outgrown():
                if again := self._again(outgrown):
                    return again
                stop = outgrown
            else:
                stop = self._stop(updated)
        return PhaseReport(
            name=self.phase.name,
            stop=stop,
            iterations=len(self.history),
            nodes=self.nodes,
            seconds=perf_counter() - self.begin,
            matches=dict(sorted((+self.matches).items())),
            rule_seconds=dict(sorted(self.seconds.items())),
            busiest=self.busiest,
            sat_out=dict(sorted(self.back_off.sat_out.items())),
            bans=tuple(b for b in self.run.course.bans if b.position == self.position),
            growth=tuple(iteration.nodes for iteration in self.history),
        )

    def _iterate(self) -> bool:
        """Run each rule once that is not banned; whether the e-graph changed."""
        iteration = len(self.history) + 1
        progress = Progress(self.phase.name, self.position, iteration, self.nodes, self.busiest)
        self.run.told(progress)
        banned = self._banned(iteration)
        allowed = [name for name in self.names if name not in banned]
        active = self.back_off.active(allowed, iteration)
        begun, counts, updated = self.nodes, Counter[str](), False
        one_by_one = self.run.course.one_by_one
        for rules in [(), *((rule,) for rule in active)] if one_by_one else [active]:
            if one_by_one and rules:
                self.run.told(replace(progress, rule=rules[0]))
            report = self._apply(rules)
            counts.update({name: n for name, n in report.num_matches_per_rule.items() if n})
            updated |= report.updated
            for name, spent in report.search_and_apply_time_per_rule.items():
                if spent:
                    self.seconds[name] += spent.total_seconds() * 1000  # egglog reports ms as us
        matched = Counter[str]()
        for name, count in counts.items():
            if rule := self.rule_of.get(name):
                matched[rule] += count
                self.matches[name] += count if updated else 0
        self.busiest = max(sorted(+counts), key=lambda name: counts[name], default=None)
        self.back_off.observe(matched, begun, iteration)
        self.history.append(_Iteration(begun, +matched))
        return updated

    def _apply(self, rules: Sequence[str]) -> Any:
        """Apply `rules` once, deduce everything, and return egglog's report."""
        if self.run.watch:
            self.run.watch(self.phase, len(self.history) + 1, rules)
        try:
            outputs = run(self.run.egraph, self._step(rules))
            self.sizes = deduced(self.run.egraph, outputs, before=self.sizes)
        except SaturationError as problem:
            raise self._blamed(str(problem)) from None
        if conflict := find_conflict(self.run.egraph, self.sizes):
            raise self._blamed(f"it {conflict}")
        self.nodes = nodes_of(self.sizes)
        return outputs[0].report

    def _banned(self, iteration: int) -> frozenset[str]:
        now, bans = (self.position, iteration), self.run.course.bans
        return frozenset(ban.rule for ban in bans if (ban.position, ban.iteration) <= now)

    def _step(self, active: Sequence[str]) -> list[Command]:
        """The commands of an iteration: the rules `active`, and the phase's generated rules."""
        own = self.run.book.own
        generated = ("lower",) if "lower" in self.phase.rulesets else ()
        rulesets = (*generated, *(own[name] for name in active))
        if rulesets not in self._steps:
            name = f"engine/step/{self.position}/{len(self._steps)}"
            parse = self.run.egraph.parse_program
            run(self.run.egraph, parse(f"(unstable-combined-ruleset {name} {' '.join(rulesets)})"))
            step = f"(run {name} 1)" if self.run.counted else f"(run-schedule (run {name}))"
            self._steps[rulesets] = parse(f"{step}\n{DEDUCE}")
        return self._steps[rulesets]

    def _outgrown(self) -> StopReason | None:
        """The bound that the e-graph exceeds; ``None`` if it exceeds none."""
        if self.nodes > self.most_growth:
            return StopReason.GROWTH
        rows = sum(self.sizes.values())
        if self.nodes > self.most_nodes or rows > self.most_nodes * _ROWS_PER_NODE:
            return StopReason.NODES
        return None

    def _again(self, reason: StopReason) -> Course | None:
        """The course of a new run without the rule to blame; ``None`` to stop, for `reason`."""
        course, iteration = self.run.course, len(self.history)
        may_ban = len(course.bans) < _MOST_BANS and perf_counter() < self.run.deadline
        if may_ban and (ban := self._ban()):
            return replace(course, bans=(*course.bans, ban))
        if self.nodes > OVERSTEP * self._most() and iteration > 1:
            halt = Halt(self.position, iteration - 1, reason)
            return replace(course, halts=(*course.halts, halt))
        return None

    def _most(self) -> float:
        return min(self.most_nodes, self.most_growth)

    def _ban(self) -> Ban | None:
        """A ban of the rule with the most matches since the e-graph was small.

        Rules of the user come first, as the families of the book shrink terms or have a measure.
        The ban begins where the e-graph was small: the nodes of an exploding rule are of little
        use, they cost time in extraction, and other rules need the room.
        """
        kept = min(self._most() / 2, max(_SMALL, _SMALL_GROWTH * self.history[0].nodes))
        small = [k for k, then in enumerate(self.history) if then.nodes <= kept]
        first = small[-1] if small else len(self.history) - 1
        matched = sum((then.matches for then in self.history[first:]), Counter[str]())
        users = {rule for rule in matched if rule in self.run.book.of_user}
        suspects = sorted(users or matched)
        if not suspects:
            return None
        return Ban(
            rule=max(suspects, key=lambda rule: matched[rule]),
            phase=self.phase.name,
            position=self.position,
            iteration=first + 1,
            nodes_before=self.history[first].nodes,
            nodes_after=self.nodes,
        )

    def _stop(self, updated: bool) -> StopReason | None:
        """The reason to end the phase now; ``None`` if it goes on."""
        iteration = len(self.history)
        updated = updated or self.back_off.release() or bounded(self.run.egraph).updated
        if not updated:
            return StopReason.SATURATED
        for halt in self.run.course.halts:
            if (halt.position, halt.iteration) == (self.position, iteration):
                return halt.reason
        if perf_counter() > min(self.run.deadline, self.begin + self.phase.seconds):
            return StopReason.TIME
        most = self.phase.iterations
        most = self.run.budget.iterations if most is None else most
        return StopReason.ITERATIONS if iteration >= most else None

    def _blamed(self, problem: str) -> SaturationError:
        message = f"a rule of phase {self.phase.name} is wrong: {problem}"
        return blamed(message, self.run.view, self.run.book, self.run.budget)
