"""Saturation in a worker process, for rules that may not terminate or exhaust the memory.

egglog cannot be interrupted within an iteration, and aborts if it runs out of memory.  So rules of
users run in a process with a bounded address space, which is killed at a time limit.
"""

from dataclasses import replace
from functools import partial
from time import perf_counter

from relax_egraph.egraph.forks import egglog_works
from relax_egraph.egraph.rulebook.book import OWN_PHASE, RuleBook
from relax_egraph.egraph.rulebook.reading import adopt, is_adopted
from relax_egraph.egraph.saturation.course import Course, Progress
from relax_egraph.egraph.saturation.in_process import Saturated, saturate_here
from relax_egraph.egraph.saturation.report import Ban, PhaseReport, Report, StopReason
from relax_egraph.egraph.saturation.schedule import Budget, Schedule
from relax_egraph.egraph.saturation.transfer import Answer, Names, Request, Rows
from relax_egraph.egraph.view import View
from relax_egraph.errors import SaturationError
from relax_egraph.ir.symbol_ranges import active, assuming
from relax_egraph.workers.main import memory_is_limited, tell
from relax_egraph.workers.pool import run_in_worker
from relax_egraph.workers.process import Death, Limits

_OVERTIME = 2.0
"""A worker is killed after this many times the seconds of the budget."""

_GRACE = 5.0
"""Additional seconds for steps without a budget: loading, lowering and reading back."""

_START = 60.0
"""Seconds to start a worker and to declare the rules of a book in it."""

_STOPS = {"time": StopReason.TIME, "memory": StopReason.MEMORY, "crash": StopReason.CRASH}
_UNLIMITED = "the worker process had no bound on its memory: this platform has none to set"


def saturate_isolated(view: View, book: RuleBook, budget: Budget, schedule: Schedule) -> Saturated:
    """Saturate in the worker; its exceptions are raised here.

    If the worker dies, a second run applies rules one by one to identify the rule to blame, and a
    third run leaves that rule out.  If the worker dies again, the result is the view with the
    kernels of its operators only.  The report has a note on it.
    """
    begin = perf_counter()
    names = Names()
    request = Request(book, active(), Rows.of(view), budget, schedule, Course())
    answer, notes = ask(request, names), list[str]()
    if isinstance(answer, Death) and answer.last:
        notes.append(_described(answer))
        first: Progress = answer.last
        answer = ask(replace(request, course=Course(one_by_one=True)), names)
        if isinstance(answer, Death) and answer.last and (rule := answer.last.rule):
            ban = Ban(rule, first.phase, first.position, first.iteration, first.nodes, None)
            answer = ask(replace(request, course=Course((ban,))), names)
        elif isinstance(answer, Answer):
            notes.append("rules were then applied one by one")
    if isinstance(answer, Death):
        notes.append(f"this block is not rewritten: {_described(answer)}")
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
    """`view` with the kernels of its operators, without any rule of a user."""
    plain = RuleBook(tuple(f for f in request.book.families if f in OWN_PHASE))
    own = set(OWN_PHASE)
    lowering = tuple(p for p in request.schedule if p.rulesets and set(p.rulesets) <= own)
    if egglog_works():
        return saturate_here(view, plain, request.budget, lowering)
    answer = ask(replace(request, book=plain, schedule=lowering, course=Course()), names)
    if isinstance(answer, Death):
        raise SaturationError(f"this block is not lowered: {_described(answer)}")
    return _received(answer, answer.report, view)


def _described(death: Death) -> str:
    """A sentence on the death of the worker."""
    last: Progress | None = death.last
    if last is None:
        return f"the worker process {death} before it began"
    at = f" at rule {last.rule}" if last.rule else ""
    return f"the worker process {death} in iteration {last.iteration} of phase {last.phase}{at}"


def _lost(death: Death, view: View, schedule: Schedule, seconds: float) -> PhaseReport:
    """The report of the phase in which the worker died."""
    last: Progress = death.last or Progress(schedule[0].name, 0, 1, len(view.classes))
    return PhaseReport(
        name=last.phase,
        stop=_STOPS[death.cause],
        iterations=last.iteration - 1,
        nodes=last.nodes,
        seconds=seconds,
        busiest=last.rule or last.busiest,
    )


def ask(request: Request, names: Names) -> Answer | Death:
    """The worker's answer, or the cause of its death; `names` replaces values by numbers.

    A worker that dies before it begins may suffer from an earlier request, so this one is repeated
    once.
    """
    answer = _once(request, names)
    if isinstance(answer, Death) and answer.last is None:
        return _once(request, names)
    return answer


def _once(request: Request, names: Names) -> Answer | Death:
    budget = request.budget
    limits = Limits(budget.seconds * _OVERTIME + _GRACE, budget.memory, _START)
    saturate = partial(_saturated, names.dumps(request))
    while (answer := run_in_worker(saturate, limits)) is None:
        adopted = run_in_worker(partial(adopt, request.book.reading), limits)
        if isinstance(adopted, Death):
            return adopted
    return answer if isinstance(answer, Death) else names.loads(answer)


def _saturated(data: bytes) -> bytes | None:
    """The answer to a request, in the worker; ``None`` if it has not read the book's rules."""
    names = Names()
    request: Request = names.loads(data)
    book = request.book
    if not is_adopted(book.families, book.user, book.operators):
        return None
    with assuming(request.assumptions), book.operators.in_force():
        done = saturate_here(
            request.rows.view(),
            book,
            request.budget,
            request.schedule,
            request.course,
            tell,
        )
    return names.dumps(Answer(Rows.of(done.view), done.report, done.became, memory_is_limited()))
