"""Entries of a rule book without a book: what they use need not be declared."""

from relax_egraph.egraph.rulebook.forms import Source
from relax_egraph.egraph.rulebook.loader import load
from relax_egraph.egraph.rulebook.rule import Entry, Rule
from relax_egraph.egraph.rulebook.scope import Scope


def entries_of(*texts: str) -> tuple[Entry, ...]:
    """The rules and declarations of `texts`; rulesets are left out."""
    entries = load(Source("<rules>", "\n".join(texts)), Scope(declarations={}), None)
    return tuple(e for e in entries if isinstance(e, Rule) or not e.ruleset)


def rule_of(text: str) -> Rule:
    """The rule that is the whole of `text`."""
    (rule,) = entries_of(text)
    assert isinstance(rule, Rule)
    return rule
