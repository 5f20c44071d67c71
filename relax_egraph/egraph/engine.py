"""Saturation: a view and a rule book in, the saturated view and a report out."""

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

    `view` has tensor classes only.  Without a `book`, the families of the rule book are applied;
    without a `schedule`, `default_schedule`.  With `isolate`, the run is in a worker process, and
    a rule that takes all memory, or does not end, costs this block its rewrites and nothing else:
    the report says so.  By default that is done for a book with rules of users, and
    in a process that egglog does not work in (`forks`).

    Raises `SaturationError` if a rule equates values of different shape or dtype: the message names
    the rule; ``ValueError`` for a schedule that the book cannot run.  The same view and book give
    the same result, in every process, unless time runs out.
    """
    book, budget = book or RuleBook.default(), budget or Budget()
    schedule = default_schedule(book) if schedule is None else check_schedule(schedule, book)
    isolate = bool(book.user) or not egglog_works() if isolate is None else isolate
    run = saturate_isolated if isolate else saturate_here
    return run(view, book, budget, schedule)
