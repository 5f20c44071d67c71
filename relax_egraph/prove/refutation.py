"""Counterexamples of rules whose proof ends in a difference, computed with numpy."""

from dataclasses import replace

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.prove.verdict import Verdict
from relax_egraph.verify.check import check_rules

TRIALS = 12
"""The instances that are tried."""


def refuted(verdict: Verdict, book: RuleBook) -> Verdict | None:
    """The verdict with a counterexample; ``None`` if both sides agree on all instances tried.

    Only a proof that came to a difference is doubted: one that lacks a step says nothing.  Rules
    for what an instance determines by itself are not tried.
    """
    if verdict.status != "not proven" or not verdict.differs:
        return None
    if verdict.rule not in book.checked:
        return None
    (checked,) = check_rules(book, [verdict.rule.name], trials=TRIALS)
    if checked.counterexample is None:
        return None
    return replace(verdict, status="refuted", reason=str(checked.counterexample))
