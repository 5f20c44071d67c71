"""Relevance analysis: the part of a rule book that can fire in a block.

egglog pays for every table and every rule.  A rule can fire only if each operator and relation
that it matches is in the block, or is added by a rule that can fire.  Other rules are left out,
and so are the declarations of operators that no remaining rule uses.  A fact that the book deduces
has a use only if a rule that equates values asks for it, perhaps through other facts: without one,
the rules that deduce it are left out, too.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeAlias

from relax_egraph.egraph.functions.function import FUNCTIONS
from relax_egraph.egraph.node import CALLS
from relax_egraph.egraph.rulebook.calls import ASKED, demands
from relax_egraph.egraph.rulebook.forms import Tree, atoms, forms_in
from relax_egraph.egraph.rulebook.generate import generated
from relax_egraph.egraph.rulebook.rule import Entry, Rule, Statement
from relax_egraph.egraph.rulebook.scope import WRITTEN_BY_RULES, declarations_in
from relax_egraph.egraph.rulebook.vocabulary import USES, operators, vocabulary_table
from relax_egraph.ir.operators import by_operators
from relax_egraph.rules import FACTS

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


@dataclass(frozen=True, slots=True)
class _Use:
    """The names that a direction of a rule needs, and the facts that it adds.

    `makes` has the name of the direction, too, if it adds more than facts.
    """

    needs: frozenset[str]
    makes: frozenset[str]

    @property
    def facts(self) -> frozenset[str]:
        """The names that it reads and adds."""
        return self.needs | self.makes


@dataclass(frozen=True)
class Relevance:
    """The test of which `entries` of a book can fire in a program."""

    entries: tuple[Entry, ...]

    def absent(self, present: Iterable[str]) -> frozenset[str]:
        """The declared names that a run from the operators `present`, ``R.add``, cannot reach.

        Facts come with the loaded program; rules add relations.  The names of facts without a use
        are absent, too, unless they are `present`.
        """
        names = set(present)
        missing = self._unreached(names)
        return frozenset(missing | self._unread(missing, names) | self._unasked(missing, names))

    def _unreached(self, present: set[str]) -> set[str]:
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
        return missing

    def _unread(self, missing: Collection[str], asked: Collection[str]) -> set[str]:
        """The deduced facts that no rule reads, of those that can fire without the names `missing`.

        Facts in `asked` are read.  A fact that a rule adds together with another is as useful.
        """
        rules = [u for u in self._uses if u.needs.isdisjoint(missing)]
        unread = set(self._deduced.difference(asked))
        while used := {n for u in rules if not u.makes <= unread for n in u.facts & unread}:
            unread -= used
        return unread

    def _unasked(self, missing: Collection[str], asked: Collection[str]) -> set[str]:
        """The facts of `USES` that no rule reads, of those that can fire."""
        rules = (entry for entry in self.entries if isinstance(entry, Rule))
        every = (needed for rule in rules for needed in _names(rule).needs)
        return {*self._declared.intersection(USES)}.difference(
            asked, *(n for n in every if n.isdisjoint(missing))
        )

    @cached_property
    def _deduced(self) -> frozenset[str]:
        """The facts that only rules of `FACTS` in files deduce, or that follow from theirs."""
        files = {*self.entries} - {*generated()}
        forms = (entry.form for entry in files if isinstance(entry, Statement))
        declared = {d.name for form in forms for d in declarations_in(form)}
        rules = (e for e in files if isinstance(e, Rule) and e.ruleset in FACTS)
        rows = {row.head for rule in rules for d in rule.directions for row in d.rows}
        return frozenset(declared & rows) - {*WRITTEN_BY_RULES}

    @cached_property
    def _uses(self) -> tuple["_Use", ...]:
        """The uses of deduced facts by directions of rules."""
        rules = (entry for entry in self.entries if isinstance(entry, Rule))
        return tuple(use for rule in rules for use in _uses(rule, self._deduced))

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


@by_operators(64)
def _always_present() -> frozenset[str]:
    """The names that any e-graph may contain: the vocabulary without operators and functions."""
    of_operators = {f"{letter}.{name}" for name in (*operators(), *CALLS) for letter in "RK"}
    return frozenset(d.name for d in vocabulary_table()) - of_operators - FUNCTIONS.keys()


def _uses(rule: Rule, deduced: frozenset[str]) -> Iterator[_Use]:
    """The uses of `deduced` facts by the directions of `rule`."""
    names = _names(rule)
    for direction, needs in zip(rule.directions, names.needs, strict=True):
        if not (needs.isdisjoint(deduced) and names.makes.isdisjoint(deduced)):
            rows = {row.head for row in direction.rows}
            heads = (form.head for form in direction.actions)
            more = not direction.actions or any(head not in (*rows, "set") for head in heads)
            yield _Use(needs, frozenset({*rows, direction.name} if more else rows))


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
