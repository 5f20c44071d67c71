"""Which part of a rule book can matter to a block: egglog pays for every table and every rule.

A rule can fire only if each operator and relation that it matches is in the block, or is made by a
rule that can fire.  All others, and the operators that none of the rest names, are left out.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TypeAlias

from relax_egraph.egraph.functions.function import FUNCTIONS
from relax_egraph.egraph.rulebook.calls import ASKED, demands
from relax_egraph.egraph.rulebook.forms import Form, Source, Tree
from relax_egraph.egraph.rulebook.reader import read
from relax_egraph.egraph.rulebook.vocabulary import operators, vocabulary_table

_DECLARES = ("constructor", "function", "relation")


@dataclass(frozen=True, slots=True)
class _Names:
    """The names that a form needs in order to do something, and those that it then makes.

    A rule that matches either of two sides needs one of `needs`.
    """

    declares: str | None
    needs: tuple[frozenset[str], ...]
    makes: frozenset[str]


def absent(texts: tuple[str, ...], present: Iterable[str]) -> frozenset[str]:
    """What `texts` declare that cannot be where only the operators `present` are: ``R.add``.

    Facts are given with what is loaded, and relations are made by rules.
    """
    program = _program(texts)
    there = set(present)
    there |= {ASKED + name for name in there & FUNCTIONS.keys()}
    missing = set(program.declared.difference(_given(), there))
    waiting: dict[str, list[_Way]] = defaultdict(list)
    found: list[str] = []

    def wait(way: _Way) -> None:
        needed, makes = way
        if missing.isdisjoint(makes):
            return
        for name in needed:
            if name in missing:
                waiting[name].append(way)
                return
        found.extend(missing.intersection(makes))
        missing.difference_update(makes)

    for way in program.ways:
        wait(way)
    for name in found:  # which grows
        for way in waiting[name]:
            wait(way)
    return frozenset(missing)


def can_matter(text: str, missing: frozenset[str]) -> bool:
    """Whether a form, a rule or a declaration, does anything where `missing` are absent."""
    names = _names(text)
    if not names.makes.isdisjoint(missing):
        return False
    return any([needed.isdisjoint(missing) for needed in names.needs])


_Way: TypeAlias = tuple[frozenset[str], frozenset[str]]
"""The names that a form needs, and those that it then makes."""


@dataclass(frozen=True, slots=True)
class _Program:
    """The names that texts declare, and the ways in which their forms make names."""

    declared: frozenset[str]
    ways: tuple[_Way, ...]


@lru_cache(64)
def _program(texts: tuple[str, ...]) -> _Program:
    asking = (demand for text in texts for demand in demands(text))
    answers = (f"(rule (({ASKED}{name})) (({name})))" for name in FUNCTIONS)
    forms = [_names(text) for text in (*texts, *asking, *answers)]
    ways = ((needed, form.makes) for form in forms if form.makes for needed in form.needs)
    return _Program(frozenset(f.declares for f in forms if f.declares), tuple(ways))


@cache
def _given() -> frozenset[str]:
    """What may be in any e-graph: all of the vocabulary but operators and functions."""
    named = {f"{letter}.{name}" for name in operators() for letter in "RK"}
    return frozenset(d.name for d in vocabulary_table()) - named - FUNCTIONS.keys()


@lru_cache(1 << 13)
def _names(text: str) -> _Names:
    (form,) = read(Source("", text))
    items, nothing = form.items, frozenset[str]()
    if form.head == "rule":
        return _Names(None, (_applied(items[1]),), _applied(items[2]))
    if form.head in ("rewrite", "birewrite"):
        conditions = nothing.union(*map(_applied, items[3:]))
        left, right = _applied(items[1]) | conditions, _applied(items[2])
        if form.head == "rewrite":
            return _Names(None, (left,), right)
        return _Names(None, (left, right | conditions), left | right)
    if form.head in _DECLARES:
        return _Names(str(getattr(items[1], "text", "")), (_atoms(form),), nothing)
    return _Names(None, (nothing,), _applied(form))


def _applied(tree: Tree) -> frozenset[str]:
    """What `tree` applies, or passes on by its name; no variable, which may bear any name."""
    if not isinstance(tree, Form):
        return frozenset()
    head = frozenset((tree.head,)) if tree.head else frozenset[str]()
    named = _atoms(tree) if tree.head == "unstable-fn" else frozenset[str]()
    passed = (name.strip('"') for name in named if name.startswith('"'))
    return head.union(passed, *map(_applied, tree.items))


def _atoms(form: Form) -> frozenset[str]:
    """All symbols in the declaration `form`: sorts stand there by themselves."""
    inside = (_atoms(i) if isinstance(i, Form) else frozenset((i.text,)) for i in form.items)
    return frozenset[str]().union(*inside)
