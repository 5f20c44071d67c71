"""Programs of file tests with other extents and dtypes: instances for rules that need a context.

The comment ``; FIRES:`` of a case names the rules that match in it.  The ``let`` forms are the
program, and the ``set`` forms are facts about shapes, dtypes and constants; runs and checks are
ignored.
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
    """The forms of a program, the families under test, and the rules that match in it.

    `simple` tells that all dimensions are symbols and numbers; `floats` are the floating-point
    dtypes in the text.
    """

    forms: tuple[Form, ...]
    families: tuple[str, ...]
    fires: frozenset[str]
    simple: bool
    floats: frozenset[str]


_HOW = ("all", "all", "symbols")
_FLOATS = ('"float32"', '"float64"')
_SUM = re.compile(r'DimSym "[^"]*[^\w"]')
"""A dimension that is computed from others, none of which can be changed alone."""


def cases_of(text: str, name: str) -> tuple[Case, ...]:
    """The cases of a file test with a ``; FIRES:`` comment."""
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
    return [w for words in re.findall(rf"(?m)^; {name}: (.+)$", text) for w in words.split()]


def query_of(
    case: Case, declarations: Mapping[str, Declaration], random: Random, dtype: str, general: bool
) -> Query:
    """The program of `case` with floats of `dtype` and, if `general`, with variable extents.

    A case with two floating-point dtypes keeps them; extents of 0 and 1 stay.
    """
    query = Query()
    which = random.choice(_HOW) if case.simple and general else "none"
    general_form = _Generalised(which, dtype if len(case.floats) < 2 else "")
    results: set[str] = set()
    for form in case.forms:
        match form.head, form.items[1:]:
            case "run-schedule" | "run", _:
                break
            case "let", [Atom(text=name), Form() as value]:
                query.term(general_form.tree(value), "", name)
                results |= {name} if value.head != "Leaf" else set()
            case "let", [Atom(text=name), value]:
                query.same.append((name, query.term(value, "")))
            case "set", [Form() as fact, _] if _deduced(fact, results):
                pass
            case "set", [fact, value]:
                known = query.term(general_form.tree(fact), "")
                query.same.append((known, query.term(general_form.tree(value), "")))
            case head, _ if declarations.get(head) and declarations[head].result == "Unit":
                if not _deduced(form, results):
                    query.fact(general_form.tree(form), "")
            case _:
                pass
    return query


def _deduced(fact: Form, results: set[str]) -> bool:
    """Whether `fact` states the shape or dtype of an operator's result, which follows anyway."""
    about = fact.items[1] if len(fact.items) > 1 else None
    return fact.head in _INFERRED and isinstance(about, Atom) and about.text in results


_INFERRED = ("shape-of", "rank-of", "dtype-of", "shape-claim", "dtype-claim")


@dataclass(frozen=True, slots=True)
class _Generalised:
    """Rewrites terms: variables for ``all`` dimensions, for ``symbols``, or for ``none``.

    Floating-point dtypes become `dtype`, unless it is empty.
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
