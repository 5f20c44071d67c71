"""Guards: premises about dimensions that sympy decides, and their translation for egglog.

    (dim-ge a (DimSym "8"))
    -->
    (= guard-1 (dim-text a))
    (= true (py-to-bool (py-call (dim-judge) (py-from-string (+ "dim-ge" ";" guard-1 ";" "8")))))

A guard is evaluated for each match of the other premises, once the texts of its dimensions are
known.  The text of a dimension that is computed, like ``(vec-get s 0)``, is looked up for each
match, when all texts are known: egglog joins tables before it computes, and would join all
dimensions with each match.  One string crosses to Python, as each argument is pickled.  An
expression of dimensions in a guard need not be in the e-graph.
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, count
from typing import TypeGuard

from relax_egraph.egraph.rulebook.forms import (
    Atom,
    Form,
    Tree,
    atoms,
    form_of,
    is_primitive,
    premises_in,
)
from relax_egraph.egraph.rulebook.vocabulary import DIM_OPERATORS, Declaration, Param


def _guard(name: str, first: str, second: str, meaning: str) -> Declaration:
    params = (Param(first, "Dim"), Param(second, "Dim"))
    return Declaration("relation", name, params, "Unit", f"a premise: {meaning}, always")


GUARDS = (
    _guard("dim-equal", "a", "b", "a = b"),
    _guard("dim-divides", "d", "n", "n is a multiple of d"),
    _guard("dim-ge", "a", "b", "a ≥ b"),
)
"""The guards, as declarations; egglog never sees them."""

GUARD_NAMES = frozenset(guard.name for guard in GUARDS)


def is_guard(tree: Tree) -> TypeGuard[Form]:
    """Whether a premise is a guard."""
    return isinstance(tree, Form) and tree.head in GUARD_NAMES


def asking(premises: Sequence[Tree], beside: Sequence[Tree] = ()) -> tuple[Tree, ...]:
    """`premises`, in which calls of sympy replace the guards; `beside` are further patterns."""
    if not any(map(is_guard, premises)):
        return tuple(premises)
    used = {atom.text for premise in premises for atom in atoms(premise)}
    fresh = (name for k in count(1) if (name := f"guard-{k}") not in used)
    matched = matched_names((*premises, *beside))
    expanded = (_asked(p, fresh, matched) if is_guard(p) else (p,) for p in premises)
    return tuple(chain.from_iterable(expanded))


def expand(rule: Form) -> Form:
    """`rule`, in which calls of sympy replace the guards."""
    premises = premises_in(rule)
    if premises is None or not any(map(is_guard, premises.items)):
        return rule
    left = () if rule.head == "rule" else rule.items[1:2]
    expanded = replace(premises, items=asking(premises.items, left))
    return replace(rule, items=tuple(expanded if i is premises else i for i in rule.items))


def matched_names(premises: Iterable[Tree]) -> set[str]:
    """The names that stand in rows of tables in `premises`, and not only in what is computed."""
    return {name for premise in premises if not is_guard(premise) for name in _matched(premise)}


def _matched(tree: Tree) -> Iterator[str]:
    if isinstance(tree, Form):
        rows = [f for f in tree.items[1:] if isinstance(f, Form) and not is_primitive(f.head)]
        if not is_primitive(tree.head) or (tree.head == "=" and rows):
            yield from (item.text for item in tree.items[1:] if isinstance(item, Atom))
        for item in tree.items[1:]:
            yield from _matched(item)


def _asked(guard: Form, fresh: Iterator[str], matched: Container[str]) -> Iterator[Tree]:
    """The premises that evaluate `guard` by a call of sympy."""
    known: list[Tree] = []
    texts = [_text(argument, fresh, matched, known) for argument in guard.items[1:]]
    yield from known
    at = guard.start
    parts = (part for text in texts for part in ('";"', text))
    question = form_of("+", f'"{guard.head}"', *parts, at=at)
    asked = form_of("py-from-string", question, at=at)
    call = form_of("py-call", form_of("dim-judge", at=at), asked, at=at)
    yield form_of("=", "true", form_of("py-to-bool", call, at=at), at=at)


def _text(dim: Tree, fresh: Iterator[str], matched: Container[str], known: list[Tree]) -> Tree:
    """The text of `dim` as an expression of strings; adds the premises that it needs to `known`."""
    at = dim.start
    if isinstance(dim, Form) and dim.head == "DimSym":
        return dim.items[1]
    if isinstance(dim, Form) and dim.head in DIM_OPERATORS:
        a, b = (_text(item, fresh, matched, known) for item in dim.items[1:])
        return form_of("+", '"("', a, f'") {DIM_OPERATORS[dim.head]} ("', b, '")"', at=at)
    name = Atom(next(fresh), at)
    text = form_of("dim-text", dim, at=at)
    if not (isinstance(dim, Atom) and dim.text in matched):
        text = form_of("unstable-app", form_of("unstable-fn", '"dim-text"', at=at), dim, at=at)
    known.append(form_of("=", name, text, at=at))
    return name
