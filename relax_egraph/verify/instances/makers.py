"""The rules that deduce each relation.

A relation such as ``(cube-of y x)`` has no other meaning than the rules that deduce it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.generate import generated_rules
from relax_egraph.egraph.rulebook.rule import Direction, Row, Rule, deducers
from relax_egraph.rules import FACTS

NATIVE = frozenset(
    (
        *("shape-of", "rank-of", "dtype-of", "const-scalar", "is-const", "source-index"),
        *("numel-of", "is-static", "static-prefix", "dim-text", "shape-claim", "dtype-claim"),
        *("factors", "number-of-elements"),
        *("shape-conflict", "dtype-conflict", "operand-conflict", "within-tolerance"),
    )
)
"""Facts that an instance determines by itself."""


@dataclass(frozen=True, slots=True)
class Makers:
    """The patterns that deduce each relation, with the row that they add, and those that equate.

    `walks` are the relations with a recursive rule, which computes step by step.
    """

    of: Mapping[str, Sequence[tuple[Direction, Row]]]
    uniting: tuple[Direction, ...]
    walks: tuple[str, ...]


@cache
def makers_of(book: RuleBook) -> Makers:
    """The makers among the rules of `book`, the rules of facts included."""
    directions = [d for rule in (*book.rules, *generated_rules()) for d in rule.directions]
    of = deducers(directions, besides=NATIVE)
    uniting = tuple(d for d in directions if d.unites)
    walks = (name for name, rows in of.items() if any(name in reads_of(p) for p, _ in rows))
    return Makers(of, uniting, tuple(walks))


@cache
def reads_of(pattern: Direction) -> frozenset[str]:
    """The heads of the terms in the premises and the left side of `pattern`."""
    return frozenset(pattern.reads)


@cache
def reads_in(rule: Rule) -> frozenset[str]:
    """The heads of the terms in the premises and the left sides of `rule`."""
    return frozenset().union(*map(reads_of, rule.directions))


def relations_of(rule: Rule) -> tuple[str, ...]:
    """The relations and functions that `rule` adds to, each once."""
    rows = (row for direction in rule.directions for row in direction.rows)
    return tuple(dict.fromkeys(row.head for row in rows))


def needed(rule: Rule, makers: Makers) -> tuple[Rule, ...]:
    """`rule`, and all rules that deduce its premises, transitively."""
    rules = {rule.name: rule}
    todo = list(rule.directions)
    for pattern in todo:
        for name in pattern.reads:
            for maker, _ in makers.of.get(name, ()):
                if maker.rule.name not in rules and maker.rule.ruleset not in FACTS:
                    rules[maker.rule.name] = maker.rule
                    todo.append(maker)
    return tuple(rules.values())
