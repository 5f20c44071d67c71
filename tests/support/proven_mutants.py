"""Mutants of rules that are proven, and numpy refutes: none should be."""

from collections.abc import Iterable

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.prove.prove import prove
from tests.support.rule_mutants import Mutant, is_rule


def refuted(mutants: Iterable[Mutant], book: RuleBook) -> list[str]:
    """Those of the `mutants` of rules of a `book` that are rules, proven, and refuted by numpy."""
    proven = [m for m in mutants if prove(m.changed, book).status == "proven"]
    known = ((m, m.verdict(())) for m in proven if is_rule(m))
    return [str(m) for m, verdict in known if verdict.counterexample is not None]
