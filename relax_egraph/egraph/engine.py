"""Saturation: a view and a rule book in, the saturated view and a report out.

Phases run one after another.  In each iteration all rules of the phase see the same e-graph, then
facts are deduced to the end and checked, until nothing changes or a budget is reached.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from time import perf_counter

from egglog.bindings import EGraph, PrintAllFunctionsSize

from relax_egraph.egraph.blame import DEDUCE, find_blame
from relax_egraph.egraph.bulk import load_view
from relax_egraph.egraph.conflict import RELATIONS, Conflict, find_conflict
from relax_egraph.egraph.readback import read_back
from relax_egraph.egraph.report import PhaseReport as PhaseReport
from relax_egraph.egraph.report import Report as Report
from relax_egraph.egraph.report import StopReason as StopReason
from relax_egraph.egraph.rulebook import RuleBook as RuleBook
from relax_egraph.egraph.schedule import Budget as Budget
from relax_egraph.egraph.schedule import Phase, phases_of
from relax_egraph.egraph.session import prepared, run
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
        running.deduce()
        first, *others = phases_of(book)
        done = [running.phase(first, iterations)]
        overstepped = done[0].nodes > _OVERSTEP * budget.nodes and done[0].iterations > 1
        if not overstepped:
            done += [running.phase(phase, budget.iterations) for phase in others]
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

    def deduce(self) -> None:
        """Deduce the facts of what is loaded; raises `SaturationError` if they conflict."""
        outputs = run(self.egraph, self.egraph.parse_program(f"{DEDUCE}\n(print-size)"))
        if conflict := self._conflict(_sizes(outputs)):
            raise SaturationError(f"the block is ill-typed: it {conflict.says}")

    def phase(self, phase: Phase, most: int) -> PhaseReport:
        """Run one phase to its end, with at most `most` iterations."""
        begin = perf_counter()
        step = self.egraph.parse_program(
            f"(run-schedule (run {phase.ruleset}))\n{DEDUCE}\n(print-size)"
        )
        reported = {name for rule in self.book.rewrites for name in rule.reported}
        matches: Counter[str] = Counter()
        seconds: Counter[str] = Counter()
        limit = max(self.budget.nodes, phase.growth * _nodes(self._measure()))
        iterations = 0
        while True:
            iterations += 1
            outputs = run(self.egraph, step)
            found = outputs[0].report
            last = {r: n for r, n in found.num_matches_per_rule.items() if n}
            if found.updated:
                matches.update({rule: n for rule, n in last.items() if rule in reported})
            for rule, spent in found.search_and_apply_time_per_rule.items():
                seconds[rule] += spent.total_seconds() * 1000  # egglog reports ms as us
            sizes = _sizes(outputs)
            if conflict := self._conflict(sizes):
                raise self._blamed(conflict, phase)
            stop = self._stop(found.updated, sizes, limit)
            if stop or iterations >= most:
                break
        return PhaseReport(
            name=phase.name,
            stop=stop or StopReason.ITERATIONS,
            iterations=iterations,
            nodes=_nodes(sizes),
            seconds=perf_counter() - begin,
            matches=dict(sorted(matches.items())),
            rule_seconds=dict(sorted(seconds.items())),
            busiest=max(sorted(last), key=lambda rule: last[rule], default=None),
        )

    def _stop(self, updated: bool, sizes: Mapping[str, int], limit: float) -> StopReason | None:
        if not updated:
            return StopReason.SATURATED
        if _nodes(sizes) > limit or sum(sizes.values()) > limit * _ROWS_PER_NODE:
            return StopReason.NODES
        if perf_counter() > self.deadline:
            return StopReason.TIME
        return None

    def _measure(self) -> Mapping[str, int]:
        return _sizes(run(self.egraph, self.egraph.parse_program("(print-size)")))

    def _conflict(self, sizes: Mapping[str, int]) -> Conflict | None:
        return find_conflict(self.egraph) if any(sizes[r] for r in RELATIONS) else None

    def _blamed(self, conflict: Conflict, phase: Phase) -> SaturationError:
        blame = find_blame(self.view, self.book)
        if blame is None:
            return SaturationError(f"a rule of phase {phase.name} is unsound: it {conflict.says}")
        rule, first = blame
        return SaturationError(f"rule {rule.name} ({rule.span}) is unsound: it {first.says}")


def _sizes(outputs: list[object]) -> Mapping[str, int]:
    """The number of rows of each function, from the last output."""
    last = outputs[-1]
    return dict(last.sizes) if isinstance(last, PrintAllFunctionsSize) else {}


def _nodes(sizes: Mapping[str, int]) -> int:
    return sum(n for name, n in sizes.items() if name.startswith(("R.", "K.", "Leaf", "Opaque")))
