"""Deduced rows of relations and functions: the rule, its terms, and the rows that it read."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from relax_egraph.egraph.node import LEAF, SCALAR
from relax_egraph.egraph.rulebook.generate import MOVES
from relax_egraph.proof.forest import Forest
from relax_egraph.proof.paths import Deduced
from relax_egraph.proof.term import Term, Terms

CONST_SCALAR, IS_CONST = "const-scalar", "is-const"
"""Facts of a class that follow from any of its terms."""

Row: TypeAlias = tuple[Any, ...]
"""Terms, vectors of them, and plain values."""


@dataclass(frozen=True, slots=True)
class Witness:
    """A term that shows a fact by its own form, and by the rows `deduced` for its parts."""

    term: Term
    deduced: tuple[Deduced, ...] = ()


class Rows:
    """The deduced rows, and the leaves that are `numbers` or `constants`.

    A fact of a term holds for all terms that are equal to it.
    """

    def __init__(self, terms: Terms, forest: Forest) -> None:
        self.numbers, self.constants = set[Term](), set[Term]()
        self._terms, self._forest = terms, forest
        self._rows: dict[str, list[Deduced]] = defaultdict(list)
        self._known: dict[Hashable, Deduced] = {}
        self._witnesses: dict[tuple[str, Term], Witness | None] = {}

    def add(self, deduced: Deduced) -> None:
        """Add a row, which lookups return from the next `refresh` on."""
        self._rows[deduced.name].append(deduced)

    def refresh(self) -> None:
        """Rebuild the index after rows were added or terms became equal."""
        self._known.clear()
        self._witnesses.clear()
        for rows in self._rows.values():
            for deduced in rows:
                self._known.setdefault(self._key(deduced.name, deduced.row), deduced)

    def find(self, name: str, row: Row) -> Deduced | None:
        """The first deduction of `row` for the relation or function `name`, up to equality."""
        return self._known.get(self._key(name, row))

    def witness(self, name: str, term: Term) -> Witness | None:
        """A term that is equal to `term` and shows the fact `name`: a number, or constant."""
        return self._witness(name, self._forest.oldest(term), set())

    def _witness(self, name: str, oldest: Term, within: set[Term]) -> Witness | None:
        key = (name, oldest)
        if key in self._witnesses:
            return self._witnesses[key]
        if oldest in within:
            return None
        within.add(oldest)
        members = self._forest.equals(oldest)
        witness = self._plain(name, members) or self._composed(name, members, within)
        witness = witness or self._written(name, members)
        if witness or len(within) == 1:
            self._witnesses[key] = witness
        within.remove(oldest)
        return witness

    def _plain(self, name: str, members: Sequence[Term]) -> Witness | None:
        known = self.numbers if name == CONST_SCALAR else self.constants
        plain = (t for t in members if t.op == SCALAR or t in known)
        return next(map(Witness, plain), None)

    def _composed(self, name: str, members: Sequence[Term], within: set[Term]) -> Witness | None:
        """A witness whose operands are witnesses."""
        for term in members:
            if term.sort != "tensor" or (name == CONST_SCALAR and term.op not in MOVES):
                continue
            parts = term.operands
            if not parts or term.op == LEAF or any(isinstance(c, tuple) for c in term.children):
                continue
            shown = [self._witness(name, self._forest.oldest(t), within) for t in parts]
            if all(shown):
                known = dict(zip(parts, filter(None, shown), strict=True))
                composed = self._terms.term(term.over(lambda t, known=known: known[t].term))
                self._forest.add(composed)
                return Witness(composed, tuple(d for w in known.values() for d in w.deduced))
        return None

    def _written(self, name: str, members: Sequence[Term]) -> Witness | None:
        oldest = {self._forest.oldest(t) for t in members[:1]}
        for deduced in self._rows.get(name, ()):
            term = deduced.row[0]
            if isinstance(term, Term) and self._forest.oldest(term) in oldest:
                return Witness(term, (deduced,))
        return None

    def _key(self, name: str, row: Row) -> Hashable:
        return name, tuple(map(self._item, row))

    def _item(self, item: Any) -> Hashable:
        match item:
            case Term():
                return self._forest.oldest(item)
            case tuple():
                return tuple(map(self._item, item))
            case float():
                return repr(item)  # NaN is equal to itself, and 0.0 is not -0.0
            case _:
                return item


def terms_in(row: Row) -> Iterator[Term]:
    """The terms in a row."""
    for item in row:
        if isinstance(item, Term):
            yield item
        elif isinstance(item, tuple):
            yield from terms_in(item)


def closure(deduced: Iterable[Deduced]) -> tuple[Deduced, ...]:
    """`deduced` and all rows that they depend on, in topological order."""
    order: dict[Deduced, None] = {}
    stack = [(one, False) for one in reversed(tuple(deduced))]
    while stack:
        one, ready = stack.pop()
        if ready:
            order[one] = None
        elif one not in order:
            stack.append((one, True))
            stack += ((below, False) for below in reversed(one.deduced))
    return tuple(order)
