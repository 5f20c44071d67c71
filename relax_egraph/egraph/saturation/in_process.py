"""Saturation in this process."""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import inf
from time import perf_counter
from typing import TypeVar

from relax_egraph.egraph.bindings import EGraph
from relax_egraph.egraph.encoding.bulk import load_view
from relax_egraph.egraph.encoding.prepared import prepared
from relax_egraph.egraph.readback.readback import read_back
from relax_egraph.egraph.readback.tables import Tables
from relax_egraph.egraph.recording.blame import blamed
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.saturation.course import Course, Progress, Told
from relax_egraph.egraph.saturation.infer import ill_typed
from relax_egraph.egraph.saturation.report import Report
from relax_egraph.egraph.saturation.run import Run
from relax_egraph.egraph.saturation.schedule import Budget, Schedule
from relax_egraph.egraph.view import ClassId, View
from relax_egraph.ir.assumptions import Assumptions, assuming
from relax_egraph.ir.collection import no_collection
from relax_egraph.ir.operators import Operators, in_force

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Saturated:
    """The saturated `view`, the report of the run, and the new class of each original class.

    Classes that no root needs are in neither `view` nor `became`.
    """

    view: View
    report: Report
    became: Mapping[ClassId, ClassId]

    def then(self, more: "Saturated") -> "Saturated":
        """The composition of both runs; `more` is a run on the view of this one."""
        first, second = self.report, more.report
        return Saturated(
            more.view,
            Report(
                (*first.phases, *second.phases),
                first.seconds + second.seconds,
                (*first.notes, *second.notes),
            ),
            {c: more.became[b] for c, b in self.became.items() if b in more.became},
        )


@dataclass(frozen=True, slots=True)
class Saturating:
    """The inputs of a saturation and its `report`, from which it can be repeated.

    `book` and `schedule` are computed on demand.  `assumed` are the assumptions on symbols, and
    `operators` those that were in force.
    """

    view: View
    book: Callable[[], RuleBook]
    budget: Budget
    schedule: Callable[[], Schedule]
    report: Report
    assumed: Assumptions | None
    operators: Operators = field(default_factory=in_force)

    @contextmanager
    def again(self) -> Generator[None]:
        """Have its assumptions and its operators in force inside."""
        with assuming(self.assumed), self.operators.in_force():
            yield


def untouched(view: View) -> Saturated:
    """The result of an empty run on `view`."""
    return Saturated(view, Report((), 0.0), {c: c for c in view.classes})


def untold(progress: Progress) -> None:
    """A listener that ignores all progress."""


def saturate_here(
    view: View,
    book: RuleBook,
    budget: Budget,
    schedule: Schedule,
    course: Course = Course(),  # noqa: B008  frozen
    told: Told = untold,
) -> Saturated:
    """Apply the rules of `book` to `view`; `told` is called before each iteration."""
    begin = perf_counter()

    def read(egraph: EGraph, report: Report) -> Saturated:
        tables = Tables(egraph)
        if problem := ill_typed(tables):
            raise blamed(f"a rule is wrong: it {problem}", view, book, budget)
        result = read_back(tables, view)
        whole = replace(report, seconds=perf_counter() - begin)
        return Saturated(result.view, whole, result.became)

    return saturated_and_read(view, book, budget, schedule, course, told, read)


def saturated_and_read(
    view: View,
    book: RuleBook,
    budget: Budget,
    schedule: Schedule,
    course: Course,
    told: Told,
    read: Callable[[EGraph, Report], Answer],
) -> Answer:
    """Apply the rules of `book` to `view`; returns the result of `read`, which must not keep it.

    An e-graph that outgrows its bounds is not rolled back, which would take a copy in every
    iteration.  Instead the run is repeated without the rule to blame; it reaches the same e-graph
    up to the iteration of the ban.
    """
    begin, deadline = perf_counter(), inf
    while True:
        with no_collection(), prepared(book.program) as egraph:
            deadline = min(deadline, perf_counter() + budget.seconds)
            load_view(egraph, view, book.absent)
            run = Run(egraph, view, book, budget, course, deadline, told)
            done = run.schedule(schedule)
            if not isinstance(done, Course):
                return read(egraph, Report(done, perf_counter() - begin))
        course = done
