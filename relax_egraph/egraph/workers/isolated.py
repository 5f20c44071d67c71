"""Saturation in a worker process, which a rule may bring down.

egglog cannot be interrupted within an iteration, and aborts where there is no memory left.  So
what runs rules of users is a process of its own, with a bounded address space, killed when it
does not keep time.
"""

from dataclasses import replace
from time import perf_counter

from relax_egraph.egraph.rulebook.book import OWN_PHASE, RuleBook
from relax_egraph.egraph.saturation.course import Course, Progress
from relax_egraph.egraph.saturation.in_process import Saturated, saturate_here
from relax_egraph.egraph.saturation.report import Ban, PhaseReport, Report
from relax_egraph.egraph.saturation.schedule import Budget, Schedule
from relax_egraph.egraph.view import View
from relax_egraph.egraph.workers.home import egglog_works
from relax_egraph.egraph.workers.transfer import Answer, Names, Request, Rows
from relax_egraph.egraph.workers.worker_process import Death, ask
from relax_egraph.errors import SaturationError
from relax_egraph.ir.symbol_ranges import active

_UNLIMITED = "the worker process had no bound on its memory: this platform has none to set"


def saturate_isolated(view: View, book: RuleBook, budget: Budget, schedule: Schedule) -> Saturated:
    """Saturate in the worker; what it raises is raised here.

    If it dies, rules are run one by one to find the one at which it does, and the run is repeated
    without that one.  If it dies again, the view comes back with the kernels of its operators
    only.  The report says what happened.
    """
    begin = perf_counter()
    names = Names()
    request = Request(book, None, active(), Rows.of(view), budget, schedule, Course())
    answer, notes = ask(request, names), list[str]()
    if isinstance(answer, Death) and answer.last:
        notes.append(f"the worker process {answer}")
        first = answer.last
        answer = ask(replace(request, course=Course(one_by_one=True)), names)
        if isinstance(answer, Death) and answer.last and (rule := answer.last.rule):
            ban = Ban(rule, first.phase, first.position, first.iteration, first.nodes, None)
            answer = ask(replace(request, course=Course((ban,))), names)
        elif isinstance(answer, Answer):
            notes.append("rules were then applied one by one")
    if isinstance(answer, Exception):
        raise answer
    if isinstance(answer, Death):
        notes.append(f"this block is not rewritten: the worker process {answer}")
        done = _lowered(request, names, view)
        lost = _lost(answer, view, schedule, perf_counter() - begin)
        report = Report((lost, *done.report.phases), perf_counter() - begin, tuple(notes))
        return replace(done, report=report)
    notes += [] if answer.limited else [_UNLIMITED]
    report = replace(answer.report, seconds=perf_counter() - begin, notes=tuple(notes))
    return _received(answer, report, view)


def _received(answer: Answer, report: Report, view: View) -> Saturated:
    return Saturated(answer.rows.view(view.leaves, view.opaque), report, answer.became)


def _lowered(request: Request, names: Names, view: View) -> Saturated:
    """`view` with the kernels of its operators, in which no rule of a user has a part."""
    plain = RuleBook(tuple(f for f in request.book.families if f in OWN_PHASE))
    own = set(OWN_PHASE)
    lowering = tuple(p for p in request.schedule if p.rulesets and set(p.rulesets) <= own)
    if egglog_works():
        return saturate_here(view, plain, request.budget, lowering)
    answer = ask(replace(request, book=plain, schedule=lowering, course=Course()), names)
    if isinstance(answer, Death):
        raise SaturationError(f"this block is not lowered: the worker process {answer}")
    if isinstance(answer, Exception):
        raise answer
    return _received(answer, answer.report, view)


def _lost(death: Death, view: View, schedule: Schedule, seconds: float) -> PhaseReport:
    """The phase in which the worker died."""
    last = death.last or Progress(schedule[0].name, 0, 1, len(view.classes))
    return PhaseReport(
        name=last.phase,
        stop=death.stop,
        iterations=last.iteration - 1,
        nodes=last.nodes,
        seconds=seconds,
        busiest=last.rule or last.busiest,
    )
