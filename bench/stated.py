"""Rules of the book as equations of terms, as far as terms can state them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from relax_egraph.discover.candidates import Candidate
from relax_egraph.discover.evaluation import Values, leaf_values, values_of
from relax_egraph.discover.terms import (
    Apply,
    Literal,
    Number,
    ShapeOf,
    Term,
    Variable,
    Vector,
    parts,
)
from relax_egraph.discover.worlds import SORTS, TENSORS
from relax_egraph.egraph.encoding.constructors import constructors
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.forms import Atom, Form, Tree
from relax_egraph.egraph.rulebook.rule import Direction

_APPLIED = {
    "unary": "R.exp",
    "binary": "R.add",
    "reduction": "R.sum",
    "additive": "R.add",
    "linear-reduction": "R.sum",
    "extreme-reduction": "R.max",
}
"""An operator for each relation that speaks of several."""

_ASSUMED = ("is-float", "wanted", "!=", "source-index", "<", "is-scale")
"""Premises that hold in all worlds, or that only steer the engine."""


_ITEMS = {"Tensors": "Tensor", "Axes": "i64"}
"""The sorts of the items of vectors."""


class _Beyond(Exception):
    """Terms cannot state a rule."""


@dataclass(slots=True)
class _Reader:
    """Reads the trees of a direction as terms: what its premises say of variables is in them."""

    direction: Direction
    equal: dict[str, Tree]
    numbers: dict[str, float]
    names: dict[str, Variable]
    functions: dict[str, str]

    def term(self, tree: Tree, sort: str = "Tensor") -> Term:
        """The term of `tree`, an argument of `sort`."""
        if isinstance(tree, Atom):
            return self._atom(tree.text, sort)
        head, *args = tree.items
        name = head.text if isinstance(head, Atom) else ""
        if name == "unstable-app" and isinstance(args[0], Atom):
            name, args = self.functions[args[0].text], args[1:]
        if name == "shape-of" and isinstance(args[0], Atom):
            return self._shape_of(args[0].text)
        if name == "R.broadcast_to" and isinstance(args[0], Form) and args[0].head == "R.const":
            return self._number(args[0].items[1])
        if name == "vec-of" and sort in _ITEMS:
            return Vector(tuple(self.term(arg, _ITEMS[sort]) for arg in args))
        if name not in constructors() or sort != "Tensor":
            raise _Beyond(f"{name} is no operator")
        params = constructors()[name].params
        for param in params:
            if param.sort not in SORTS:
                raise _Beyond(f"{name} has an argument of sort {param.sort}")
        pairs = zip(args, params, strict=True)
        return Apply(name, tuple(self.term(arg, param.sort) for arg, param in pairs))

    def _number(self, tree: Tree) -> Term:
        if not isinstance(tree, Atom):
            raise _Beyond("a number is computed")
        return Number(self.numbers.get(tree.text) or _literal(tree.text))

    def _atom(self, text: str, sort: str) -> Term:
        if text in ("true", "false"):
            return Literal(sort, text == "true")
        if text in self.numbers:
            return Number(self.numbers[text])
        lets = self.direction.lets
        if text in lets or text in self.equal:
            return self.term(lets.get(text) or self.equal[text], sort)
        free = {
            "Tensor": [t.name for t in TENSORS],
            "Axes": ["a", "b"],
            "Shape": ["s", "u"],
            "bool": ["keep"],
            "i64": ["k"],
        }
        if text.isdigit():
            raise _Beyond("an axis is written out")
        taken = {v.name for v in self.names.values()}
        if text not in self.names:
            left = [name for name in free[sort] if name not in taken]
            if not left:
                raise _Beyond(f"there are too many variables of sort {sort}")
            self.names[text] = Variable(left[0], sort)
        return self.names[text]

    def _shape_of(self, name: str) -> Term:
        variable = self.term(Atom(name, 0))
        if not isinstance(variable, Variable):
            raise _Beyond("the shape of a term")
        return ShapeOf(variable)


def equation_of(direction: Direction) -> Candidate:
    """The rule as an equation of terms; raises `_Beyond` with the reason if it is not one."""
    reader = _Reader(direction, {}, {}, {}, {})
    for fact in direction.body:
        _read(fact, reader)
    if len(direction.unions) != 1:
        raise _Beyond("it equates several terms")
    ((left, right),) = direction.unions
    sides = reader.term(left), reader.term(right)
    values: dict[Term, Values] = {}
    for side in sides:
        for part in reversed(tuple(parts(side))):
            if isinstance(part, Number) or (isinstance(part, Variable) and part.sort == "Tensor"):
                values[part] = leaf_values(part)
            elif isinstance(part, Apply):
                values[part] = values_of(part, values.__getitem__)
    both = zip(*(values[side] for side in sides), strict=True)
    worlds = tuple(k for k, pair in enumerate(both) if None not in pair)
    if len(worlds) < 2:
        raise _Beyond("its sides have values in too few worlds")
    return Candidate(*sides, worlds, 0.0)


def _read(fact: Tree, reader: _Reader) -> None:
    match fact:
        case Form(head="=", items=(_, Atom(text=number), Form(head="const-scalar") as known)):
            reader.numbers[_name(known.items[1])] = reader.numbers[number] = _literal(number)
        case Form(head="=", items=(_, _, Form(head="source-index" | "dtype-of"))):
            pass
        case Form(head="=", items=(_, Form(head="shape-of"), Form(head="shape-of"))):
            pass  # all tensors of a world have one shape
        case Form(head="=", items=(_, Atom(text=name), Form() as term)):
            if term.head != "shape-of" and not term.head.startswith("R."):
                raise _Beyond(f"it reads {term.head}")
            reader.equal[name] = term
        case Form(head=head, items=(_, Atom(text=name), Atom(text=function), *args)) if (
            head in _APPLIED
        ):
            reader.functions[function] = _APPLIED[head]
            applied = Atom(_APPLIED[head], 0)
            reader.equal[name] = Form((applied, *args), fact.start, fact.end)
        case Form(head=head) if head in _ASSUMED:
            pass
        case _:
            raise _Beyond(f"it reads {fact.head if isinstance(fact, Form) else fact}")


def _name(tree: Tree) -> str:
    return tree.text if isinstance(tree, Atom) else ""


_ANY = 3.0
"""A number for those that are variables of a rule."""


def _literal(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return _ANY


@dataclass(frozen=True, slots=True)
class Wanted:
    """A rule of the book as an equation, or why it is none."""

    name: str
    family: str
    equation: Candidate | None
    reason: str = ""


def wanted(families: Sequence[str]) -> Iterator[Wanted]:
    """The rules of `families` that equate values."""
    for rule in RuleBook.default([], fast_math=True).rules:
        direction = rule.directions[0]
        if rule.ruleset in families and direction.unites:
            try:
                yield Wanted(rule.name, rule.ruleset, equation_of(direction))
            except _Beyond as reason:
                yield Wanted(rule.name, rule.ruleset, None, str(reason))
