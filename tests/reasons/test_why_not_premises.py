"""Of every rule of the book, in every case of its family: where it matches, and what holds it back.

egglog is asked for both.  Where a partial match lacks one premise, the rule without that premise
matches there.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TypeAlias

import pytest

from relax_egraph import rules
from relax_egraph.egraph.bindings import EGraph
from relax_egraph.egraph.commands import run_text
from relax_egraph.egraph.engine import RuleBook
from relax_egraph.egraph.readback.tables import Key
from relax_egraph.egraph.recording.case_run import case_run
from relax_egraph.egraph.recording.database import Database
from relax_egraph.egraph.rulebook.calls import demands
from relax_egraph.egraph.rulebook.forms import Source, form_of
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.egraph.saturation.answers import asked as functions_asked
from relax_egraph.egraph.saturation.deduction import add_values
from relax_egraph.egraph.saturation.measure import sizes_of
from relax_egraph.errors import SaturationError
from relax_egraph.reasons.why_not.candidates import deepest
from relax_egraph.reasons.why_not.deductions import Deductions
from relax_egraph.reasons.why_not.partial import Partial
from relax_egraph.reasons.why_not.plan import Plan, plan_of
from relax_egraph.reasons.why_not.search import Search
from relax_egraph.verify.cases import SEPARATOR, directive

CASES = Path(__file__).parents[1] / "rules"
STALE = "where-of-same"
"""A rule that egglog matches on rows which it has no more."""

UNGUARDED = ("fusion",)
"""Families of which no rule is held back by one premise in a case."""


@cache
def deductions() -> Deductions:
    every = RuleBook.default(fast_math=True, bounded=True)
    patterns = tuple(p for rule in every.rules for p in rule.directions)
    return Deductions(patterns, frozenset(every.declarations), frozenset())


Query: TypeAlias = tuple[Plan, int | None]
"""What a rule matches, without one of its premises."""


def tried(egraph: EGraph, queries: Sequence[Query], name: str) -> list[set[Key] | None]:
    """What each of `queries` is about where egglog finds it; ``None`` of one that it refuses."""
    run_text(egraph, f"(ruleset {name}) (ruleset {name}-asked)")
    asked = dict[str, Rule]()
    refused: set[int] = set()
    for k, (plan, left_out) in enumerate(queries):
        focus = plan.focus[0]
        body = form_of(*(p for n, p in enumerate(plan.pattern.body) if n != left_out))
        form = form_of("rule", body, form_of(form_of(f"{name}-{k}", focus)))
        rule = replace(plan.pattern.rule, name=f"{name}-{k}", form=form)
        run_text(egraph, f"(relation {name}-{k} ({sort_of(plan, focus)}))")
        try:
            run_text(egraph, rule.text_in(name))
            asked |= {demand.name: demand for demand in demands(rule)}
        except SaturationError:
            refused.add(k)
    for k, demand in enumerate(asked.values()):
        run_text(egraph, replace(demand, name=f"{name}-asked-{k}").text_in(f"{name}-asked"))
    known: Mapping[str, int] = {}
    while True:  # one call may be of the value of another
        sizes = sizes_of(run_text(egraph, f"(run-schedule (run {name}-asked)) (print-size)"))
        if not add_values(egraph, functions_asked(sizes, known), ()):
            break
        known = sizes
    run_text(egraph, f"(run-schedule (run {name}))")
    database = Database(egraph)
    found = ({row[0] for row in database.table(f"{name}-{k}")} for k in range(len(queries)))
    return [None if k in refused else keys for k, keys in enumerate(found)]


def sort_of(plan: Plan, variable: str) -> str:
    """The sort of a variable of `plan`."""
    declarations = RuleBook.default(fast_math=True, bounded=True).declarations
    for c in plan.conjuncts:
        if c.head in declarations:
            declaration = declarations[c.head]
            sorts = dict(zip(c.places, (*declaration.sorts, declaration.result), strict=False))
            if variable in sorts:
                return sorts[variable]
    raise AssertionError(f"{variable} occurs under no name")


def cases_of(family: str) -> Iterator[tuple[EGraph, list[Plan]]]:
    """The e-graph of each case of `family`, with what the rules of the family match."""
    text = (CASES / f"{family}.egg").read_text("utf-8")
    families = tuple(f for f in directive(text, "RULES") if f in rules.FAMILIES)
    book = RuleBook.default(families=families, fast_math=True, bounded=True)
    for case in SEPARATOR.split(text):
        present = book.where(re.findall(r'[^\s()"]+', case))
        own = [r for r in present.rules if r.ruleset == family and r.name != STALE]
        plans = [plan_of(pattern) for rule in own for pattern in rule.directions]
        with case_run(present, Source(family, re.sub(r"\$(?=\w)", "$global-", case))) as run:
            yield run.egraph, [plan for plan in plans if plan.focus]


def lacks_one(partial: Partial) -> int | None:
    """The premise that alone holds a match back, if there is one such."""
    missing = {c.premise for c in partial.plan.conjuncts if c not in partial.matched}
    left = partial.plan.pattern.left is not None
    return missing.pop() if len(missing) == 1 and (0 not in missing or not left) else None


@pytest.mark.parametrize("family", rules.FAMILIES)
def test_what_holds_a_rule_back_holds_it_back(family: str) -> None:
    held_back = 0
    for egraph, plans in cases_of(family):
        egglog = tried(egraph, [(plan, None) for plan in plans], "whole")
        search = Search(Database(egraph), deductions())
        weaker: list[tuple[Query, Key]] = []
        for plan, theirs in zip(plans, egglog, strict=True):
            focus = plan.focus[0]
            ours = {values[focus] for values in search.matches(plan, {})}
            assert ours == theirs, plan.pattern.name
            for partial in deepest(search, plan, None):
                about, premise = partial.values.get(focus), lacks_one(partial)
                if isinstance(about, Key):
                    assert partial.matches == (about in ours), plan.pattern.name
                    weaker += [((plan, premise), about)] if premise is not None else []
        found = tried(egraph, [query for query, _ in weaker], "weaker")
        for ((plan, premise), about), keys in zip(weaker, found, strict=True):
            assert keys is None or about in keys, (plan.pattern.name, plan.premises[premise or 0])
        held_back += sum(keys is not None for keys in found)
    assert held_back or family in UNGUARDED
