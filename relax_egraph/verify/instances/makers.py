"""The rules that deduce each relation.

A relation such as ``(cube-of y x)`` has no other meaning than the rules that deduce it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.forms import applied, written
from relax_egraph.egraph.rulebook.generate import generated_rules
from relax_egraph.egraph.rulebook.rule import Direction, Row, Rule, deducers
from relax_egraph.egraph.rulebook.vocabulary import vocabulary_table
from relax_egraph.rules import FACTS

NATIVE = frozenset(
    (
        *("shape-of", "rank-of", "dtype-of", "const-scalar", "is-const", "source-index"),
        *("numel-of", "is-static", "static-prefix", "dim-text", "shape-claim", "dtype-claim"),
        *("factors", "number-of-elements"),
        *("shape-conflict", "dtype-conflict", "operand-conflict", "within-tolerance"),
        "has-reciprocal",
    )
)
"""Facts that an instance determines by itself."""


@dataclass(frozen=True, slots=True)
class Makers:
    """The patterns that deduce each relation, with the row that they add, and those that equate.

    `walks` are the relations with a recursive rule that keeps some arguments, and computes the
    others step by step.  `under` are the relations that each relation may depend on.  Patterns that
    make a term of a relation `within` another are no patterns `of` it, although they add a row.
    """

    of: Mapping[str, Sequence[tuple[Direction, Row]]]
    within: Mapping[str, Sequence[Direction]]
    uniting: tuple[Direction, ...]
    walks: tuple[str, ...]
    under: Mapping[str, frozenset[str]]

    def adding(self, name: str) -> Iterator[Direction]:
        """The patterns that add rows to what a rule deduces, by an action of their own or not."""
        if name in self.of:
            yield from (pattern for pattern, _ in self.of[name])
            yield from self.within.get(name, ())

    def recurs(self, way: tuple[Direction, Row]) -> bool:
        """Whether the rule of `way` reads what may depend on the relation that it deduces."""
        pattern, row = way
        return any(row.head in self.under.get(n, ()) or n == row.head for n in reads_of(pattern))


@cache
def makers_of(book: RuleBook) -> Makers:
    """The makers among the rules of `book`, the rules of facts included.

    The terms of programs, such as ``(DimAdd a b)``, are made by programs as well: they are none.
    """
    directions = [d for rule in (*book.rules, *generated_rules()) for d in rule.directions]
    terms = {d.name for d in vocabulary_table() if d.kind == "constructor"}
    of = deducers(directions, besides=NATIVE | terms)
    within: dict[str, list[Direction]] = {}
    for direction in directions:
        for head in direction.within:
            within.setdefault(head, []).append(direction)
    uniting = tuple(d for d in directions if d.unites)
    walks = (name for name, rows in of.items() if any(map(_is_step, rows)))
    return Makers(of, within, uniting, tuple(walks), _under(of))


def _under(of: Mapping[str, Sequence[tuple[Direction, Row]]]) -> Mapping[str, frozenset[str]]:
    """By relation, all relations that the rules that deduce it read, transitively."""
    under = {
        name: {read for pattern, _ in rows for read in reads_of(pattern) & of.keys()}
        for name, rows in of.items()
    }
    growing = True
    while growing:
        before = sum(map(len, under.values()))
        for names in under.values():
            names |= {below for name in tuple(names) for below in under[name]}
        growing = sum(map(len, under.values())) > before
    return {name: frozenset(names) for name, names in under.items()}


def _is_step(way: tuple[Direction, Row]) -> bool:
    step, row = way
    kept = {keeps(step, row, k) for k in range(len(row.args))}
    return row.head in reads_of(step) and kept == {True, False}


@cache
def keeps(step: Direction, row: Row, at: int) -> bool:
    """Whether a `step` of a walk keeps argument number `at`."""
    return any(
        written(read.items[1 + at]) == written(row.args[at])
        for fact in step.premises
        for read in applied(fact, {row.head})
    )


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
    """`rule`, and all rules that add rows that it reads, transitively, without those of `FACTS`."""
    rules = {rule.name: rule}
    todo = list(rule.directions)
    for pattern in todo:
        for name in pattern.reads:
            for maker in makers.adding(name):
                if maker.rule.name not in rules:
                    rules[maker.rule.name] = maker.rule
                    todo.append(maker)
    return tuple(r for r in rules.values() if r is rule or r.ruleset not in FACTS)
