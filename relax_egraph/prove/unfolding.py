"""Premises that other rules deduce, replaced by the patterns of these rules.

A relation holds only where some rule deduced it: a rule that reads it is proven for each of them.
Facts that only steer the engine are left out, which assumes less.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from relax_egraph.egraph.rulebook.forms import Atom, Form, Tree, form_of, heads, is_literal
from relax_egraph.egraph.rulebook.generate import APPLICATIONS
from relax_egraph.egraph.rulebook.rule import Direction, Row
from relax_egraph.verify.instances.makers import Makers

STEERING = frozenset(
    (
        *("source-index", "uses-of", "only-used-by", "wanted", "addend", "varies", "is-const"),
        *("beside", "together", "last-step", "affine-level", "within-tolerance", "static-prefix"),
        *("is-static", "dim-text", "is-moderate"),
        *("is-ordinary", "formula-number", "has-channels", "write-out-rotary"),
    )
)
"""Facts that steer the engine, or keep numbers from overflow: no proof assumes them."""

KNOWN = frozenset(
    (
        *("shape-of", "rank-of", "dtype-of", "numel-of", "const-scalar", "is-float"),
        *("is-number", "is-nonnegative", "low-of", "high-of", "magnitude-of", "has-reciprocal"),
        *APPLICATIONS,
    )
)
"""Facts that a general form knows by itself."""

BUILT = "built="
"""An equation with a term that a rule made: it has to be well-typed, as the right side."""

MOST = 96
"""The most combinations of rules that deduce the premises of one rule."""


class Recursive(Exception):
    """A relation is deduced from itself: that takes an induction."""


@dataclass(frozen=True)
class Unfolded:
    """Facts over operators only, in the order of the rule, and the names of the rules used."""

    facts: tuple[Tree, ...]
    rules: tuple[str, ...] = ()


def unfolded(direction: Direction, makers: Makers) -> list[Unfolded]:
    """Every way in which the premises of `direction` may have been deduced; raises `Recursive`."""
    results: list[Unfolded] = []
    for result in _ways([(f, ()) for f in direction.body], makers, ()):
        results.append(result)
        if len(results) > MOST:
            raise Recursive(f"its premises are deduced in more than {MOST} ways")
    return results


_Traced: TypeAlias = tuple[Tree, tuple[str, ...]]
"""A fact, and the relations that were unfolded to it."""


def _ways(facts: Sequence[_Traced], makers: Makers, rules: tuple[str, ...]) -> Iterator[Unfolded]:
    for place, (fact, above) in enumerate(facts):
        if STEERING.intersection(heads(fact)):
            rest = (*facts[:place], *facts[place + 1 :])
            yield from _ways(rest, makers, rules)
            return
        found = _relation(fact, makers)
        if found is None:
            continue
        head, args, value = found
        if head in above:
            raise Recursive(f"{head} is deduced from {head}: that takes an induction")
        for number, (maker, row) in enumerate(makers.of[head]):
            prefix = f"{len(rules)}.{number}."
            joined = _joined(maker, row, args, value, prefix)
            if joined is None:
                continue
            equations, names = joined
            inner = [*equations, *(_renamed(f, prefix, names) for f in maker.body)]
            traced = [(f, (*above, head)) for f in inner]
            more = (*facts[:place], *traced, *facts[place + 1 :])
            yield from _ways(more, makers, (*rules, maker.name))
        return
    yield Unfolded(tuple(fact for fact, _ in facts), rules)


def _relation(fact: Tree, makers: Makers) -> tuple[str, tuple[Tree, ...], Tree | None] | None:
    """A fact of a relation that rules deduce: its name, arguments, and value."""
    if not isinstance(fact, Form):
        return None
    if _is_deduced(fact.head, makers):
        return fact.head, fact.items[1:], None
    if fact.head == "=":
        for one, other in ((1, 2), (2, 1)):
            side = fact.items[one]
            if isinstance(side, Form) and _is_deduced(side.head, makers):
                return side.head, side.items[1:], fact.items[other]
    return None


def _is_deduced(head: str, makers: Makers) -> bool:
    return head in makers.of and head not in KNOWN


def _joined(
    maker: Direction, row: Row, args: Sequence[Tree], value: Tree | None, prefix: str
) -> tuple[list[Tree], dict[str, Tree]] | None:
    """What makes the row that a rule adds a premise: equations, and terms for its variables.

    ``None`` if an equation is false.
    """
    pairs = list(zip(args, row.args, strict=True))
    if value is not None and row.value is not None:
        pairs.append((value, row.value))
    names: dict[str, Tree] = {}
    open_: list[tuple[Tree, Tree]] = []
    for ours, theirs in pairs:
        name = theirs.text if isinstance(theirs, Atom) else ""
        literal = is_literal(name)
        if name and not literal and name not in names and name not in maker.lets:
            names[name] = ours
        elif literal and isinstance(ours, Atom) and is_literal(ours.text):
            if ours.text != name:
                return None
        else:
            open_.append((ours, theirs))
    equations: list[Tree] = []
    for ours, theirs in open_:
        head = BUILT if isinstance(theirs, Form) and theirs.head.startswith("R.") else "="
        equations.append(form_of(head, ours, _renamed(theirs, prefix, names)))
    for name, term in maker.lets.items():
        equations.append(form_of(BUILT, prefix + name, _renamed(term, prefix, names)))
    return equations, names


def _renamed(tree: Tree, prefix: str, names: Mapping[str, Tree]) -> Tree:
    if isinstance(tree, Atom):
        plain = is_literal(tree.text) or tree.text == "_"
        return tree if plain else names.get(tree.text) or replace(tree, text=prefix + tree.text)
    first, *rest = tree.items
    head = first if isinstance(first, Atom) else _renamed(first, prefix, names)
    return replace(tree, items=(head, *(_renamed(t, prefix, names) for t in rest)))
