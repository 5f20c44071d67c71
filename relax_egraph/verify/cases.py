"""Programs of file tests, with other extents and dtypes: instances for rules that need a setting.

A case says by ``; FIRES:`` which rules match in it.  Its ``let`` forms are the program, and what it
sets of shapes, dtypes and constants is known; what it runs and checks is left out.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from relax_egraph.egraph.rulebook.forms import Atom, Form, Source, Tree
from relax_egraph.egraph.rulebook.reader import read
from relax_egraph.egraph.rulebook.vocabulary import Declaration
from relax_egraph.verify.instances.query import Query

SEPARATOR = re.compile(r"(?m)^; -----\n")


@dataclass(frozen=True, slots=True)
class Case:
    """A program, the families that it is for, and the rules that match in it.

    All of its dimensions are symbols and numbers if it is `simple`; `floats` are the floating-point
    dtypes that it names.
    """

    forms: tuple[Form, ...]
    families: tuple[str, ...]
    fires: frozenset[str]
    simple: bool
    floats: frozenset[str]


_HOW = ("all", "all", "symbols")
_FLOATS = ('"float32"', '"float64"')
_SUM = re.compile(r'DimSym "[^"]*[^\w"]')
"""A dimension that is computed from others: none of them can be changed alone."""


def cases_of(text: str, name: str) -> tuple[Case, ...]:
    """The cases of a file test; those in which nothing is said to fire are left out."""
    families = tuple(directive(text, "RULES"))
    parts = ((part, directive(part, "FIRES")) for part in SEPARATOR.split(text))
    return tuple(
        Case(
            tuple(read(Source(name, part))),
            families,
            frozenset(f.rstrip("=><") for f in fires),
            not _SUM.search(part),
            frozenset(text for text in _FLOATS if text in part),
        )
        for part, fires in parts
        if fires
    )


def directive(text: str, name: str) -> list[str]:
    """The words behind every ``; NAME:``."""
    return [w for found in re.findall(rf"(?m)^; {name}: (.+)$", text) for w in found.split()]


def query_of(
    case: Case, declarations: Mapping[str, Declaration], random: Random, dtype: str, general: bool
) -> Query:
    """The program of `case`, of floats of `dtype`; if it is `general`, with variable extents.

    One that names two floating-point dtypes keeps them; extents of 0 and 1 stay.
    """
    query = Query()
    which = random.choice(_HOW) if case.simple and general else "none"
    how = _Generalised(which, dtype if len(case.floats) < 2 else "")
    made: set[str] = set()
    for form in case.forms:
        match form.head, form.items[1:]:
            case "run-schedule" | "run", _:
                break
            case "let", [Atom(text=name), Form() as value]:
                query.term(how.tree(value), "", name)
                made |= {name} if value.head != "Leaf" else set()
            case "let", [Atom(text=name), value]:
                query.same.append((name, query.term(value, "")))
            case "set", [Form() as fact, _] if _deduced(fact, made):
                pass
            case "set", [fact, value]:
                known = query.term(how.tree(fact), "")
                query.same.append((known, query.term(how.tree(value), "")))
            case head, _ if declarations.get(head) and declarations[head].result == "Unit":
                if not _deduced(form, made):
                    query.fact(how.tree(form), "")
            case _:
                pass
    return query


def _deduced(fact: Form, made: set[str]) -> bool:
    """Whether `fact` says the shape or dtype of what an operator makes, which its rule tells."""
    about = fact.items[1] if len(fact.items) > 1 else None
    return fact.head in _INFERRED and isinstance(about, Atom) and about.text in made


_INFERRED = ("shape-of", "rank-of", "dtype-of", "shape-claim", "dtype-claim")


@dataclass(frozen=True, slots=True)
class _Generalised:
    """Terms with variables for dimensions: for ``all`` of them, the ``symbols``, or ``none``.

    Floats are of `dtype`, unless that is empty.
    """

    which: str
    dtype: str

    def tree(self, tree: Tree) -> Tree:
        if isinstance(tree, Atom):
            floats = self.dtype and tree.text in _FLOATS
            return Atom(f'"{self.dtype}"', tree.start) if floats else tree
        if tree.head == "DimSym" and isinstance(tree.items[1], Atom):
            text = tree.items[1].text.strip('"')
            simple = text.isidentifier() or (self.which == "all" and text.isdigit())
            if self.which != "none" and simple and text not in ("0", "1"):
                return Atom(f"dim-{text}", tree.start)
            return tree
        return Form(tuple(map(self.tree, tree.items)), tree.start, tree.end)
