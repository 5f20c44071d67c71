"""Terms of rules: operators applied to variables, numbers and attributes."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from relax_egraph.egraph.encoding import literals


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of a rule; its sort is ``Tensor``, or that of an attribute."""

    name: str
    sort: str = "Tensor"


@dataclass(frozen=True, slots=True)
class Number:
    """A tensor whose elements are all `value`."""

    value: float


@dataclass(frozen=True, slots=True)
class Literal:
    """An attribute that is written out."""

    sort: str
    value: Any


@dataclass(frozen=True, slots=True)
class ShapeOf:
    """An attribute: the shape of a tensor variable."""

    variable: Variable


@dataclass(frozen=True, slots=True)
class Apply:
    """The operator `head`, by its name in rules, applied to operands and all attributes."""

    head: str
    args: "tuple[Term, ...]"


Term: TypeAlias = Variable | Number | Literal | ShapeOf | Apply


def size_of(term: Term) -> int:
    """The number of operators in `term`."""
    return sum(isinstance(part, Apply) for part in parts(term))


def parts(term: Term) -> Iterator[Term]:
    """`term` and all terms in it, from left to right."""
    yield term
    match term:
        case Apply(args=args):
            for arg in args:
                yield from parts(arg)
        case ShapeOf(variable):
            yield variable
        case _:
            return


def variables(*terms: Term) -> tuple[Variable, ...]:
    """The variables of `terms`, in the order of their first occurrence."""
    every = (part for term in terms for part in parts(term))
    return tuple(dict.fromkeys(part for part in every if isinstance(part, Variable)))


def leaves(term: Term) -> tuple[Variable | Number, ...]:
    """The variables and numbers of `term`, in the order of their first occurrence."""
    return tuple(dict.fromkeys(p for p in parts(term) if isinstance(p, Variable | Number)))


def replaced(term: Term, of: Callable[[Variable], Term]) -> Term:
    """`term` with each of its variables replaced."""
    match term:
        case Variable():
            return of(term)
        case ShapeOf(variable):
            new = of(variable)
            return ShapeOf(new) if isinstance(new, Variable) else term
        case Apply(head, args):
            return Apply(head, tuple(replaced(arg, of) for arg in args))
        case _:
            return term


def written(term: Term) -> str:
    """`term` in the notation of rules; `premises` say what its numbers and shapes are."""
    match term:
        case Variable(name):
            return name
        case Number(value):
            return _number_name(value)
        case ShapeOf(Variable(name)):
            return f"{name}s"
        case Literal(sort, value):
            return literals.attribute(sort, value) or ""
        case Apply(head, args):
            return f"({' '.join([head, *map(written, args)])})"


def premises(*terms: Term) -> tuple[str, ...]:
    """The premises that bind the numbers and the shapes in `terms`."""
    return tuple(dict.fromkeys(p for t in terms for part in parts(t) if (p := _premise(part))))


def _premise(part: Term) -> str:
    match part:
        case Number(value):
            return f"(= {literals.number(value)} (const-scalar {_number_name(value)}))"
        case ShapeOf(Variable(name)):
            return f"(= {name}s (shape-of {name}))"
        case _:
            return ""


_NAMES = {0.0: "zero", 1.0: "one", -1.0: "minus"}


def _number_name(value: float) -> str:
    return _NAMES.get(value) or f"number{value:g}".replace("-", "minus").replace(".", "point")
