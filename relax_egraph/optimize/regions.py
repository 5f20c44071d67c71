"""One region: its view saturated and its best program chosen, or both read from the cache."""

import logging
from collections.abc import Hashable, Sequence
from functools import cached_property

from relax_egraph.egraph.engine import (
    Budget,
    Report,
    RuleBook,
    Saturated,
    Schedule,
    StopReason,
    check_schedule,
    default_schedule,
    saturate,
)
from relax_egraph.egraph.saturation.in_process import Saturating
from relax_egraph.egraph.view import View
from relax_egraph.extract import (
    REFERENCE_PROFILE,
    Hints,
    Offers,
    Prices,
    Pricing,
    baseline_from,
    effort_of,
    extract_from,
    scenarios_of,
)
from relax_egraph.extract.problem import OPTIMAL
from relax_egraph.ir import assumptions
from relax_egraph.ir.expr import ExternFunc
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.op import Op
from relax_egraph.ir.operators import Operators, in_force
from relax_egraph.lower.library import Library
from relax_egraph.optimize.cache import PlanCache, Priced
from relax_egraph.optimize.made_calls import check_made_calls, stated_functions
from relax_egraph.optimize.prepare import book_for, has_tolerance, operators_in
from relax_egraph.optimize.session import Session
from relax_egraph.passes import PassContext
from relax_egraph.passes.fold_constant import GROWTH_LIMIT
from relax_egraph.rules import Rules

LOG = logging.getLogger(__name__)


class RegionOptimizer:
    """Optimizes the regions of one prepared module, as a session asks.

    The rule book and the schedule are built when a region is not in the cache; if the session has
    rules or a schedule of its own they are checked at once.
    """

    def __init__(self, prepared: IRModule, session: Session) -> None:
        self._prepared = prepared
        self._session = session
        self._rules = session.read_rules()
        self._operators = in_force()
        self._library = Library()
        self._profile = session.profile or REFERENCE_PROFILE
        self._offered: dict[Hashable, Offers] = {}
        self._growth_limit = PassContext.current().option(GROWTH_LIMIT.key)
        if session.rules or session.without or session.schedule:
            _ = self.schedule
        self._cache = PlanCache(
            (
                *(self._rules, session.without, session.fast_math, has_tolerance(prepared)),
                *(operators_in(prepared), session.budget, session.schedule),
                *(*_named_in(self._operators, self._rules), *self._left_out),
            ),
            (
                *(self._library, self._profile, session.prices),
                self._growth_limit,
            ),
            effort_of(session.time_limit),
        )

    @cached_property
    def book(self) -> RuleBook:
        """The rules of all regions."""
        return self._book((*self._session.without, *self._left_out))

    def _book(self, without: Sequence[str]) -> RuleBook:
        LOG.debug(
            "rules of the book, and of %s", [name for name, _ in self._rules.files] or "no file"
        )
        with self._operators.in_force():
            return book_for(self._prepared, self._rules, without, self._session.fast_math)

    @cached_property
    def _left_out(self) -> tuple[str, ...]:
        """The rules of packages that make calls which cannot be judged."""
        if all("(R.call_" not in text for _, text in self._rules.files):
            return ()
        prices = self._session.prices or Prices()
        return check_made_calls(self._book(self._session.without), self._prepared, prices)

    @cached_property
    def stated(self) -> frozenset[ExternFunc]:
        """The packed functions that rules of the session say something about."""
        if all("(R.call_pure_packed" not in text for _, text in self._rules.files):
            return frozenset()
        return stated_functions(self.book)

    @cached_property
    def schedule(self) -> Schedule:
        """The phases of a saturation; raises ``ValueError`` for one that the book cannot run."""
        schedule = self._session.schedule
        if schedule is None:
            return default_schedule(self.book)
        return check_schedule(schedule, self.book)

    def saturated(self, key: Hashable, view: View, phases: Schedule | None) -> Saturated:
        """`view`, whose region is known by `key`, saturated by `phases` or the whole schedule."""
        session = self._session
        saturated = self._cache.saturated(
            key,
            view,
            lambda: saturate(
                view,
                self.book,
                session.budget,
                self.schedule if phases is None else phases,
                session.isolate,
            ),
        )
        report = saturated.report
        for reason in (report.stop_reason, *report.notes):
            if reason != StopReason.SATURATED.value:
                LOG.info("a region of %d classes: %s", len(view.classes), reason)
        return saturated

    def repeatable(self, view: View, phases: Schedule | None, report: Report) -> Saturating:
        """How `saturated` was run on `view`, so that a proof can repeat it."""
        return Saturating(
            view,
            lambda: self.book,
            self._session.budget or Budget(),
            lambda: self.schedule if phases is None else phases,
            report,
            assumptions.active(),
        )

    def best(self, key: Hashable, source: View, saturated: Saturated, hints: Hints) -> Priced:
        """The best program of a saturated region at the sizes `hints`, and the cost of `source`."""
        priced = self._cache.priced(
            key,
            hints,
            saturated,
            lambda known: Priced(
                extract_from(
                    saturated.view,
                    self._offers(hints),
                    self._growth_limit,
                    effort=self._cache.effort,
                    known=known,
                ),
                baseline_from(source, self._offers(hints)),
            ),
        )
        extraction = priced.extraction
        if extraction.status != OPTIMAL:
            share = 100 * extraction.gap
            LOG.info("a program that may cost %.2g %% too much: %s", share, extraction.status)
        return priced

    def _offers(self, hints: Hints) -> Offers:
        """The offers of the library at the sizes `hints`, under the active assumptions."""
        sizes = tuple((weight, *sorted(of.items())) for weight, of in scenarios_of(hints))
        key = (sizes, assumptions.active())
        if key not in self._offered:
            pricing = Pricing(self._profile, hints, self._session.prices)
            self._offered[key] = Offers(self._library, pricing)
        return self._offered[key]


def _named_in(operators: Operators, rules: Rules) -> list[Op]:
    """The operators of users that may be in `rules`; the others of a plan are in its region."""
    return [op for op in operators.own if any(op.name in text for _, text in rules.files)]
