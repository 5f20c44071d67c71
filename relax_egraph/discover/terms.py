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


@dataclass(frozen=True, slots=True)
class Vector:
    """A vector of `items`: tensors that are joined, or one axis."""

    items: "tuple[Term, ...]"


Term: TypeAlias = Variable | Number | Literal | ShapeOf | Apply | Vector


def size_of(term: Term) -> int:
    """The number of operators in `term`."""
    return sum(isinstance(part, Apply) for part in parts(term))


def parts(term: Term) -> Iterator[Term]:
    """`term` and all terms in it, from left to right."""
    yield term
    match term:
        case Apply(args=args) | Vector(items=args):
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
        case Vector(items):
            return Vector(tuple(replaced(item, of) for item in items))
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
        case Vector(items):
            return literals.vector([*map(written, items)])


def premises(*terms: Term) -> tuple[str, ...]:
    """The premises that bind the numbers and the shapes in `terms`, and say what is a matrix."""
    each = [p for t in terms for part in parts(t) if (p := _premise(part))]
    tensors = (v.name for v in variables(*terms) if v.sort == "Tensor")
    of_matrices = any(map(is_of_matrices, terms))
    return tuple(dict.fromkeys([*each, *(f"(= 2 (rank-of {n}))" for n in tensors if of_matrices)]))


def is_of_matrices(term: Term) -> bool:
    """Whether an axis of `term` is written out, which is one of a matrix."""
    return any(isinstance(part, Literal) and part.sort == "i64" for part in parts(term))


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
