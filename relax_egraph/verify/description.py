"""Descriptions of rules: operators that a rule matches and makes, and facts that it reads."""

from dataclasses import dataclass

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.forms import heads
from relax_egraph.egraph.rulebook.generate import generated_rules
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.egraph.rulebook.scope import vocabulary
from relax_egraph.verify.instances.makers import relations_of
from relax_egraph.verify.rule_text import rule_text


@dataclass(frozen=True, slots=True)
class Description:
    """The `text` of a rule, the operators that it matches and makes, and the facts that it reads.

    The text begins with the comment above the rule.  `facts` are part of the vocabulary.  Each of
    the `relations`, which rule files declare, comes with the names of the rules that deduce it.
    """

    text: str
    matches: tuple[str, ...]
    makes: tuple[str, ...]
    facts: tuple[str, ...]
    relations: tuple[tuple[str, tuple[str, ...]], ...]


def describe(book: RuleBook, rule: Rule) -> Description:
    """The description of `rule`, a rule of `book`."""
    used, results = list[str](), list[str]()
    for pattern in rule.directions:
        used += pattern.reads
        results += (h for t in (*pattern.actions, pattern.right) if t for h in heads(t))
    kinds = {d.name: d.kind for d in vocabulary()}
    makers = _makers(book)
    return Description(
        rule_text(book, rule).text,
        tuple(dict.fromkeys(n for n in used if kinds.get(n) == "constructor")),
        tuple(dict.fromkeys(n for n in results if kinds.get(n) == "constructor")),
        tuple(dict.fromkeys(n for n in used if kinds.get(n) in ("function", "relation"))),
        tuple((n, makers[n]) for n in dict.fromkeys(used) if n in makers and n not in kinds),
    )


def _makers(book: RuleBook) -> dict[str, tuple[str, ...]]:
    """By relation, the rules that deduce it."""
    makers: dict[str, dict[str, None]] = {}
    for rule in (*book.rules, *generated_rules()):
        for name in relations_of(rule):
            makers.setdefault(name, {})[rule.name] = None
    return {name: tuple(rules) for name, rules in makers.items()}
