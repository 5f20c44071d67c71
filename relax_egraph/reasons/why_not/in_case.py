"""Explanations for `rules test`: the first failing premise of a rule without matches in a case."""

from collections.abc import Iterator
from dataclasses import replace

from relax_egraph.egraph.node import LEAF
from relax_egraph.egraph.recording.case_run import CaseRun, case_run
from relax_egraph.egraph.recording.database import Database
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.errors import RelaxEgraphError
from relax_egraph.ir.expr import Var
from relax_egraph.reasons.why_not.candidates import deepest, described, full_matches
from relax_egraph.reasons.why_not.deductions import Deductions
from relax_egraph.reasons.why_not.naming import Names
from relax_egraph.reasons.why_not.plan import plan_of
from relax_egraph.reasons.why_not.search import Search
from relax_egraph.reasons.why_not.wording import Words
from relax_egraph.verify.file_tests.cases import Outcome
from relax_egraph.verify.file_tests.run import source_of


def with_premises(outcome: Outcome) -> Outcome:
    """`outcome` with the first failing premise of each rule that matched nothing.

    The case runs once more for that, in this process.
    """
    silent = [f.silent for f in outcome.failures if f.silent]
    if not silent:
        return outcome
    test = outcome.test
    book = test.book
    rules = {rule.name: rule for rule in book.rules}
    try:
        with case_run(book, source_of(test)) as run:
            reasons = {n: tuple(_reason(rules[n], book, run)) for n in silent if n in rules}
    except RelaxEgraphError:
        return outcome
    failures = (replace(f, found=(*f.found, *reasons.get(f.silent, ()))) for f in outcome.failures)
    return replace(outcome, failures=tuple(failures))


def _reason(rule: Rule, book: RuleBook, run: CaseRun) -> Iterator[str]:
    """The lines that explain why `rule` of `book` matched nothing in the `run` of a case."""
    database = Database(run.egraph)
    patterns = tuple(pattern for other in book.rules for pattern in other.directions)
    search = Search(database, Deductions(patterns, frozenset(book.declarations), frozenset()))
    plans = [plan_of(pattern) for pattern in rule.directions]
    if any(full_matches(search, plan) for plan in plans):
        yield f"it matches at the end of the case: put (run {rule.ruleset}) there"
        return
    near = [partial for plan in plans for partial in deepest(search, plan, None)]
    if near:
        deepest_near = max(near, key=lambda partial: partial.weight)
        words = Words(search, _names(database), lambda _: "")
        match = described(words, deepest_near, "the case")
        yield f"the first premise that fails, at {match.at}:"
        yield from (f"  {line}" for line in match.first.lines())
        return
    heads = (c.head for plan in plans for c in plan.conjuncts if c.kind != "computed")
    if missing := next((head for head in heads if not database.table(head)), ""):
        yield f"its first premise fails: there is no {missing} at all"


def _names(database: Database) -> Names:
    """The names of the values of a case, from its ``let`` forms."""
    lets = {
        name: key
        for name, key in database.lets.items()
        if key.sort in ("Tensor", "Kernel", "Tuple")
    }
    called = {key: name for name, key in reversed(lets.items())}
    leaves = {
        node.key: Var(called.get(key, f"(Leaf {node.key})"))
        for key, nodes in database.nodes.items()
        for node in nodes
        if node.op == LEAF
    }
    return Names(database, leaves, lets)
