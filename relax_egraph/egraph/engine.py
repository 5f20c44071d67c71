"""Saturation: from a view and a rule book to the saturated view and a report."""

from relax_egraph.egraph.forks import egglog_works
from relax_egraph.egraph.rulebook.book import RuleBook as RuleBook
from relax_egraph.egraph.saturation.in_process import Saturated as Saturated
from relax_egraph.egraph.saturation.in_process import saturate_here
from relax_egraph.egraph.saturation.in_process import untouched as untouched
from relax_egraph.egraph.saturation.isolated import saturate_isolated
from relax_egraph.egraph.saturation.report import Ban as Ban
from relax_egraph.egraph.saturation.report import PhaseReport as PhaseReport
from relax_egraph.egraph.saturation.report import Report as Report
from relax_egraph.egraph.saturation.report import StopReason as StopReason
from relax_egraph.egraph.saturation.schedule import Budget as Budget
from relax_egraph.egraph.saturation.schedule import Phase as Phase
from relax_egraph.egraph.saturation.schedule import Schedule as Schedule
from relax_egraph.egraph.saturation.schedule import before_weights as before_weights
from relax_egraph.egraph.saturation.schedule import check_schedule as check_schedule
from relax_egraph.egraph.saturation.schedule import default_schedule as default_schedule
from relax_egraph.egraph.view import View


def saturate(
    view: View,
    book: RuleBook | None = None,
    budget: Budget | None = None,
    schedule: Schedule | None = None,
    isolate: bool | None = None,
) -> Saturated:
    """Apply the rules of `book` to `view` until nothing changes or `budget` is used up.

    `view` has tensor classes only.  The default `book` has all families; the default `schedule` is
    `default_schedule`.  With `isolate`, the run is in a worker process: a rule that exhausts the
    memory, or does not terminate, costs this block its rewrites and nothing else, and the report
    has a note.  The default is to isolate books with rules of users, and all runs in a process in
    which egglog does not work (`forks`).

    Raises `SaturationError`, which names the rule, if a rule equates values of different shape or
    dtype, and ``ValueError`` for a schedule that the book cannot run.  The same view and book give
    the same result in every process, unless time runs out.
    """
    book, budget = book or RuleBook.default(), budget or Budget()
    schedule = default_schedule(book) if schedule is None else check_schedule(schedule, book)
    isolate = bool(book.user) or not egglog_works() if isolate is None else isolate
    run = saturate_isolated if isolate else saturate_here
    with book.operators.in_force():
        return run(view, book, budget, schedule)
