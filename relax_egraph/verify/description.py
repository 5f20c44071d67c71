"""What a rule needs in order to match, what it makes, and what deduces what it needs."""

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
    """Of a rule its `text`, the operators that it matches and makes, and the facts that it reads.

    The text begins with the comment above the rule.  `facts` are of the vocabulary; each of the
    `relations` is declared in a rule file, and deduced by the rules that are named beside it.
    """

    text: str
    matches: tuple[str, ...]
    makes: tuple[str, ...]
    facts: tuple[str, ...]
    relations: tuple[tuple[str, tuple[str, ...]], ...]


def describe(book: RuleBook, rule: Rule) -> Description:
    """The description of `rule`, which is one of `book`."""
    used, made = list[str](), list[str]()
    for pattern in rule.directions:
        used += pattern.reads
        made += (h for t in (*pattern.actions, pattern.right) if t for h in heads(t))
    kinds = {d.name: d.kind for d in vocabulary()}
    makers = _makers(book)
    return Description(
        rule_text(book, rule).text,
        tuple(dict.fromkeys(n for n in used if kinds.get(n) == "constructor")),
        tuple(dict.fromkeys(n for n in made if kinds.get(n) == "constructor")),
        tuple(dict.fromkeys(n for n in used if kinds.get(n) in ("function", "relation"))),
        tuple((n, makers[n]) for n in dict.fromkeys(used) if n in makers and n not in kinds),
    )


def _makers(book: RuleBook) -> dict[str, tuple[str, ...]]:
    """By relation the rules that deduce it."""
    found: dict[str, dict[str, None]] = {}
    for rule in (*book.rules, *generated_rules()):
        for name in relations_of(rule):
            found.setdefault(name, {})[rule.name] = None
    return {name: tuple(rules) for name, rules in found.items()}
