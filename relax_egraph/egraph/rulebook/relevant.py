"""Relevance analysis: the part of a rule book that can fire in a block.

egglog pays for every table and every rule.  A rule can fire only if each operator and relation
that it matches is in the block, or is added by a rule that can fire.  Other rules are left out,
and so are the declarations of operators that no remaining rule uses.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import TypeAlias

from relax_egraph.egraph.functions.function import FUNCTIONS
from relax_egraph.egraph.rulebook.calls import ASKED, demands
from relax_egraph.egraph.rulebook.forms import Tree, atoms, forms_in
from relax_egraph.egraph.rulebook.rule import Entry, Rule
from relax_egraph.egraph.rulebook.vocabulary import operators, vocabulary_table

_DECLARES = ("constructor", "function", "relation")


@dataclass(frozen=True, slots=True)
class _Names:
    """The names that a form needs in order to fire, and the names that it then adds.

    A birewrite needs one of the two sets in `needs`.
    """

    declares: str | None
    needs: tuple[frozenset[str], ...]
    makes: frozenset[str]


_Way: TypeAlias = tuple[frozenset[str], frozenset[str]]
"""The names that a direction of a rule needs, and the names that it then adds."""


@dataclass(frozen=True)
class Relevance:
    """The test of which `entries` of a book can fire in a program."""

    entries: tuple[Entry, ...]

    def absent(self, present: Iterable[str]) -> frozenset[str]:
        """The declared names that no run from the operators `present` can reach: ``R.add``.

        Facts come with the loaded program; rules add relations.
        """
        names = set(present)
        names |= {ASKED + name for name in names & FUNCTIONS.keys()}
        missing = set(self._declared.difference(_always_present(), names))
        waiting: dict[str, list[_Way]] = defaultdict(list)
        reached: list[str] = []

        def wait(way: _Way) -> None:
            needed, makes = way
            if missing.isdisjoint(makes):
                return
            for name in needed:
                if name in missing:
                    waiting[name].append(way)
                    return
            reached.extend(missing.intersection(makes))
            missing.difference_update(makes)

        for way in self._ways:
            wait(way)
        for name in reached:  # which grows
            for way in waiting[name]:
                wait(way)
        return frozenset(missing)

    @cached_property
    def _declared(self) -> frozenset[str]:
        return frozenset(name for entry in self.entries if (name := _names(entry).declares))

    @cached_property
    def _ways(self) -> tuple[_Way, ...]:
        """The ways in which rules, demands and the answers to demands add names."""
        rules = (entry for entry in self.entries if isinstance(entry, Rule))
        demanding = dict.fromkeys(demand for rule in rules for demand in demands(rule))
        every = map(_names, (*self.entries, *demanding))
        ways = ((needed, names.makes) for names in every if names.makes for needed in names.needs)
        answers = ((frozenset((ASKED + name,)), frozenset((name,))) for name in FUNCTIONS)
        return (*ways, *answers)


def can_matter(entry: Entry, missing: frozenset[str]) -> bool:
    """Whether an entry has an effect in an e-graph without the names `missing`."""
    names = _names(entry)
    if not names.makes.isdisjoint(missing):
        return False
    return any([needed.isdisjoint(missing) for needed in names.needs])


@cache
def _always_present() -> frozenset[str]:
    """The names that any e-graph may contain: the vocabulary without operators and functions."""
    of_operators = {f"{letter}.{name}" for name in operators() for letter in "RK"}
    return frozenset(d.name for d in vocabulary_table()) - of_operators - FUNCTIONS.keys()


@lru_cache(1 << 13)
def _names(entry: Entry) -> _Names:
    if isinstance(entry, Rule):
        needs = tuple(_applied(*direction.matched) for direction in entry.directions)
        makes = (_applied(*filter(None, (d.right, *d.actions))) for d in entry.directions)
        return _Names(None, needs, frozenset[str]().union(*makes))
    form = entry.form
    if form.head in _DECLARES:
        symbols = [atom.text for atom in atoms(form)]
        return _Names(symbols[1], (frozenset(symbols),), frozenset())
    return _Names(None, (frozenset(),), _applied(form))


def _applied(*trees: Tree) -> frozenset[str]:
    """The heads in `trees`, and names passed to ``unstable-fn``; no variables."""
    forms = [form for tree in trees for form in forms_in(tree)]
    functions = (form for form in forms if form.head == "unstable-fn")
    passed = (atom.text for form in functions for atom in atoms(form) if atom.text.startswith('"'))
    return frozenset((*(form.head for form in forms), *(text.strip('"') for text in passed))) - {""}
