"""Saturation: a view and a rule book in, the saturated view and a report out.

Phases run one after another.  In each iteration all rules of the phase see the same e-graph, then
facts are deduced to the end and checked, until nothing changes or a budget is reached.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from time import perf_counter

from egglog.bindings import EGraph

from relax_egraph.egraph.blame import DEDUCE, find_blame
from relax_egraph.egraph.bulk import load_view
from relax_egraph.egraph.commands import prepared, run
from relax_egraph.egraph.conflict import find_conflict
from relax_egraph.egraph.measure import nodes_of, sizes_of
from relax_egraph.egraph.readback import read_back
from relax_egraph.egraph.report import PhaseReport as PhaseReport
from relax_egraph.egraph.report import Report as Report
from relax_egraph.egraph.report import StopReason as StopReason
from relax_egraph.egraph.rulebook import RuleBook as RuleBook
from relax_egraph.egraph.schedule import Budget as Budget
from relax_egraph.egraph.schedule import Phase, phases_of
from relax_egraph.egraph.tables import Tables
from relax_egraph.egraph.view import ClassId, View
from relax_egraph.errors import SaturationError

_ROWS_PER_NODE = 30
"""Facts and helper relations may have this many rows for each node that the budget allows."""

_OVERSTEP = 2
"""An e-graph of more than this many times the node budget is not lowered."""


@dataclass(frozen=True, slots=True)
class Saturated:
    """The saturated `view`, what was done, and which class each class of the given view became.

    Classes that no root needs are in neither `view` nor `became`.
    """

    view: View
    report: Report
    became: Mapping[ClassId, ClassId]


def saturate(view: View, book: RuleBook | None = None, budget: Budget | None = None) -> Saturated:
    """Apply the rules of `book` to `view` until nothing changes or `budget` is used up.

    `view` has tensor classes only.  Without a `book`, the families of the rule book are applied.
    Raises `SaturationError` if a rule equates values of different shape or dtype: the message names
    the rule.  The same view and book give the same result, in every process, unless time runs out.
    """
    book, budget = book or RuleBook.default(), budget or Budget()
    return _saturate(view, book, budget, budget.iterations)


def _saturate(view: View, book: RuleBook, budget: Budget, iterations: int) -> Saturated:
    """Saturate; the first phase has at most `iterations`.

    An iteration that far oversteps the node budget is not undone in place, which would take a copy
    of each e-graph: the run is repeated up to the iteration before.
    """
    begin = perf_counter()
    with prepared(book.commands) as egraph:
        load_view(egraph, view)
        running = _Running(egraph, view, book, budget, begin + budget.seconds)
        nodes = running.deduce()
        first, *others = phases_of(book)
        done = [running.phase(first, iterations, nodes)]
        overstepped = done[0].nodes > _OVERSTEP * budget.nodes and done[0].iterations > 1
        if not overstepped:
            for phase in others:
                done.append(running.phase(phase, budget.iterations, done[-1].nodes))
            result = read_back(Tables(egraph), view)
            return Saturated(
                result.view, Report(tuple(done), perf_counter() - begin), result.became
            )
    again = _saturate(view, book, budget, done[0].iterations - 1)
    blamed = replace(again.report.phases[0], stop=StopReason.NODES, busiest=done[0].busiest)
    phases = (blamed, *again.report.phases[1:])
    return replace(again, report=Report(phases, perf_counter() - begin))


@dataclass(frozen=True, slots=True)
class _Running:
    """A run on `egraph`, which must be over at `deadline`."""

    egraph: EGraph
    view: View
    book: RuleBook
    budget: Budget
    deadline: float

    def deduce(self) -> int:
        """Deduce the facts of what is loaded, and return how many nodes there are.

        Raises `SaturationError` if the facts conflict.
        """
        outputs = run(self.egraph, self.egraph.parse_program(DEDUCE))
        sizes = sizes_of(outputs)
        if conflict := find_conflict(self.egraph, sizes):
            raise SaturationError(f"the block is ill-typed: it {conflict}")
        return nodes_of(sizes)

    def phase(self, phase: Phase, most: int, nodes: int) -> PhaseReport:
        """Run one phase, which begins with `nodes`, to its end or for `most` iterations."""
        begin = perf_counter()
        step = self.egraph.parse_program(f"(run-schedule (run {phase.ruleset}))\n{DEDUCE}")
        reported = {name for rule in self.book.rewrites for name in rule.reported}
        matches: Counter[str] = Counter()
        seconds: Counter[str] = Counter()
        limit = max(self.budget.nodes, phase.growth * nodes)
        iterations = 0
        while True:
            iterations += 1
            try:
                outputs = run(self.egraph, step)
            except SaturationError as problem:
                raise self._blamed(str(problem), phase) from None
            found = outputs[0].report
            last = {r: n for r, n in found.num_matches_per_rule.items() if n}
            if found.updated:
                matches.update({rule: n for rule, n in last.items() if rule in reported})
            for rule, spent in found.search_and_apply_time_per_rule.items():
                seconds[rule] += spent.total_seconds() * 1000  # egglog reports ms as us
            sizes = sizes_of(outputs)
            if conflict := find_conflict(self.egraph, sizes):
                raise self._blamed(f"it {conflict}", phase)
            stop = self._stop(found.updated, sizes, limit)
            if stop or iterations >= most:
                break
        return PhaseReport(
            name=phase.name,
            stop=stop or StopReason.ITERATIONS,
            iterations=iterations,
            nodes=nodes_of(sizes),
            seconds=perf_counter() - begin,
            matches=dict(sorted(matches.items())),
            rule_seconds=dict(sorted(seconds.items())),
            busiest=max(sorted(last), key=lambda rule: last[rule], default=None),
        )

    def _stop(self, updated: bool, sizes: Mapping[str, int], limit: float) -> StopReason | None:
        if not updated:
            return StopReason.SATURATED
        if nodes_of(sizes) > limit or sum(sizes.values()) > limit * _ROWS_PER_NODE:
            return StopReason.NODES
        if perf_counter() > self.deadline:
            return StopReason.TIME
        return None

    def _blamed(self, problem: str, phase: Phase) -> SaturationError:
        blame = find_blame(self.view, self.book, _OVERSTEP * self.budget.nodes)
        return SaturationError(blame or f"a rule of phase {phase.name} is wrong: {problem}")
