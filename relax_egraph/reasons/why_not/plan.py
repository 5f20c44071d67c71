"""A rule's left side and premises as a conjunctive query over the tables of an e-graph.

A premise ``(= (shape-of a) (shape-of b))`` becomes two conjuncts that share a variable: equal
variables have one name.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeAlias

from relax_egraph.egraph.rulebook.forms import Atom, Form, placed, symbols, written
from relax_egraph.egraph.rulebook.rule import ROOT, Direction
from relax_egraph.ir.operators import by_operators
from relax_egraph.verify.instances.primitives import computes
from relax_egraph.verify.instances.query import Apply, Arg, Query, literal_of

Kind: TypeAlias = Literal["node", "fact", "computed"]

Values: TypeAlias = Mapping[str, Any]
"""Values of variables, from the rows of a `Database`."""

ENGINE = ("shape-of", "rank-of", "dtype-of", "numel-of", "const-scalar", "source-index", "dim-text")
"""The functions of a value that the engine deduces."""

OF_VALUES = ("is-float", "is-const", "has-reciprocal", "within-tolerance")
"""The relations of a value that the engine deduces."""

TEXT_PRIMITIVES = ("count-matches",)
"""Primitives on strings, which the instances of `rules check` do not compute."""


@dataclass(frozen=True, slots=True, eq=False)
class Conjunct:
    """``result = (head args..)``: a node of a pattern, a fact or relation, or a computation.

    `result` is ``None`` for a relation.  The text is that of premise number `premise`, from `start`
    to `end`.
    """

    head: str
    args: tuple[Arg, ...]
    result: Arg | None
    kind: Kind
    premise: int
    start: int
    end: int

    @property
    def places(self) -> tuple[Arg, ...]:
        """The arguments and the result, in the order of a row."""
        return self.args if self.result is None else (*self.args, self.result)

    @property
    def variables(self) -> frozenset[str]:
        """The variables among the arguments and the result."""
        return frozenset(a for a in self.places if isinstance(a, str))


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """The conjuncts of `pattern` in the order of its text, a node before its operands.

    `premises` are texts, the left side of a rewrite first.  `names` maps the variables of the rule
    to those of the conjuncts.  `focus` are the variables for the roots of a match: the values for
    which the rule states something new.
    """

    pattern: Direction
    premises: tuple[str, ...]
    conjuncts: tuple[Conjunct, ...]
    names: dict[str, Arg]
    focus: tuple[str, ...]

    @property
    def nodes(self) -> int:
        """The number of operators in the pattern."""
        return sum(c.kind == "node" for c in self.conjuncts)


@by_operators(1 << 12)
def plan_of(pattern: Direction) -> Plan:
    """The query of one direction of a rule."""
    query = Query()
    query.match(pattern)
    same = _classes(query.same)

    def name(arg: Arg) -> Arg:
        return same.get(arg, arg) if isinstance(arg, str) else arg

    places = {
        id(form): (number, start, end)
        for number, tree in enumerate(pattern.matched)
        for form, start, end in placed(tree)
    }
    unordered = (
        Conjunct(
            apply.head,
            tuple(map(name, apply.args)),
            None if apply.result is None else name(apply.result),
            _kind(apply),
            *places[id(apply.form)],
        )
        for apply in query.applies
    )
    conjuncts = tuple(sorted(unordered, key=lambda c: (c.premise, c.start)))
    names = {atom.text: name(atom.text) for tree in pattern.matched for atom in symbols(tree)}
    if pattern.left is not None:
        names[ROOT] = ROOT
    rows = (c.variables for c in conjuncts if c.kind != "computed")
    matched = frozenset[str]().union(*rows)
    about = (name(variable) for variable in _focus(pattern, conjuncts))
    focus = tuple(a for a in about if isinstance(a, str) and a in matched)
    texts = tuple(map(written, pattern.matched))
    return Plan(pattern, texts, conjuncts, names, tuple(dict.fromkeys(focus)))


def _classes(same: Iterable[tuple[Arg, Arg]]) -> dict[str, Arg]:
    """One name for each set of equal variables: a literal, or a variable that the rule names."""
    representative: dict[str, Arg] = {}

    def find(arg: Arg) -> Arg:
        while isinstance(arg, str) and arg in representative:
            arg = representative[arg]
        return arg

    for pair in same:
        a, b = map(find, pair)
        if a == b:
            continue
        if not isinstance(a, str) or (isinstance(b, str) and b.startswith("_")):
            a, b = b, a
        if isinstance(a, str):
            representative[a] = b
    return {name: find(name) for name in representative}


def _kind(apply: Apply) -> Kind:
    if apply.head.startswith(("R.", "K.")) and apply.head != "R.none":
        return "node"
    computed = computes(apply.head) or apply.head in TEXT_PRIMITIVES
    return "computed" if computed else "fact"


def _focus(pattern: Direction, conjuncts: tuple[Conjunct, ...]) -> Iterator[Arg]:
    """The variables for which the rule states something; else the class of its first operator."""
    if pattern.left is not None:
        yield ROOT
        return
    for action in pattern.actions:
        about = action.items[1] if len(action.items) > 1 else None
        if action.head == "set" and isinstance(about, Form) and len(about.items) > 1:
            about = about.items[1]
        if action.head != "let" and isinstance(about, Atom) and literal_of(about.text) is None:
            yield about.text
    yield from (c.result for c in conjuncts if c.kind == "node" and c.result is not None)


def known_places(c: Conjunct, values: Values) -> dict[int, Any]:
    """The known values of `c`, by place."""
    places = enumerate(c.places)
    return {
        k: values[a] if isinstance(a, str) else a.value
        for k, a in places
        if not isinstance(a, str) or a in values
    }


def bind(places: Sequence[Arg], row: Sequence[Any], values: Values) -> Values | None:
    """`values` extended by the variables that `row` binds at `places`; ``None`` on a conflict."""
    bound = dict(values)
    for place, value in zip(places, row, strict=False):
        known = bound.setdefault(place, value) if isinstance(place, str) else place.value
        if known is not value and known != value:  # NaN is itself
            return None
    return bound


@cache
def groups_of(plan: Plan) -> Mapping[int, int]:
    """The connected component of each conjunct, by ``id``; computations connect nothing."""
    group = {id(c): k for k, c in enumerate(plan.conjuncts)}
    tables = [c for c in plan.conjuncts if c.kind != "computed"]
    changed = True
    while changed:
        changed = False
        for k, a in enumerate(tables):
            for b in tables[k + 1 :]:
                if a.variables & b.variables and group[id(a)] != group[id(b)]:
                    group[id(a)] = group[id(b)] = min(group[id(a)], group[id(b)])
                    changed = True
    return group
