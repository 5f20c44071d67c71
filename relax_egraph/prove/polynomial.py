"""Polynomials with integer coefficients: extents, indices, and conditions on both.

A name stands for an extent, which is 0 or more, and an `Index` for a position along one.  Quotients
and remainders are variables, too, as is a `Digit`, an index that a reshape computes.
"""

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, TypeAlias

from relax_egraph.ir.dim_form import form
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.form import Algebra, fold, leftward


@dataclass(frozen=True)
class Index:
    """A variable from 0 to below `extent`: an index of the result, or one that is summed over."""

    name: str
    extent: "Polynomial"

    @property
    def key(self) -> str:
        """A text by which variables are sorted."""
        return self.name


@dataclass(frozen=True)
class Quotient:
    """``⌊a / b⌋``."""

    a: "Polynomial"
    b: "Polynomial"

    @cached_property
    def key(self) -> str:
        """A text by which variables are sorted."""
        return f"({self.a.key})//({self.b.key})"


@dataclass(frozen=True)
class Remainder:
    """``a - b · ⌊a / b⌋``."""

    a: "Polynomial"
    b: "Polynomial"

    @cached_property
    def key(self) -> str:
        """A text by which variables are sorted."""
        return f"({self.a.key})%({self.b.key})"


@dataclass(frozen=True)
class Digit:
    """The index along `axis` of element number `position` of a tensor of `shape`, row-major.

    The position is that of an element.
    """

    position: "Polynomial"
    shape: tuple["Polynomial", ...]
    axis: int

    @cached_property
    def key(self) -> str:
        """A text by which variables are sorted."""
        return f"{self.axis}of({self.position.key})in[{','.join(d.key for d in self.shape)}]"


@dataclass(frozen=True)
class Extreme:
    """The lesser of `a` and `b`, or the greater."""

    greater: bool
    a: "Polynomial"
    b: "Polynomial"

    @cached_property
    def key(self) -> str:
        """A text by which variables are sorted."""
        return f"{'max' if self.greater else 'min'}({self.a.key},{self.b.key})"


class Element(Protocol):
    """An element of an integer tensor, as an index."""

    @property
    def key(self) -> str:
        """A text by which variables are sorted."""
        ...

    @property
    def free(self) -> frozenset[str]:
        """The names in it."""
        ...

    def replaced(self, by: Mapping[str, "Polynomial"]) -> "Polynomial":
        """The element with polynomials for names."""
        ...


Variable: TypeAlias = str | Index | Quotient | Remainder | Digit | Extreme | Element
Monomial: TypeAlias = tuple[Variable, ...]


def key_of(variable: Variable) -> str:
    """The text by which variables are sorted."""
    return variable if isinstance(variable, str) else variable.key


@dataclass(frozen=True, eq=False)
class Polynomial:
    """A sum of monomials with coefficients other than 0."""

    terms: Mapping[Monomial, int] = field(default_factory=dict[Monomial, int])

    @cached_property
    def key(self) -> str:
        """The text of the polynomial; equal ones have one text."""
        parts = ((".".join(map(key_of, m)), c) for m, c in self.terms.items())
        return "+".join(f"{c}*{m}" if m else str(c) for m, c in sorted(parts)) or "0"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polynomial) and self.key == other.key

    @cached_property
    def _hash(self) -> int:
        return hash(self.key)

    def __hash__(self) -> int:
        return self._hash

    def __add__(self, other: "Polynomial | int") -> "Polynomial":
        terms = dict(self.terms)
        for monomial, c in of(other).terms.items():
            terms[monomial] = terms.get(monomial, 0) + c
        return Polynomial({m: c for m, c in terms.items() if c})

    def __neg__(self) -> "Polynomial":
        return Polynomial({m: -c for m, c in self.terms.items()})

    def __sub__(self, other: "Polynomial | int") -> "Polynomial":
        return self + -of(other)

    def __mul__(self, other: "Polynomial | int") -> "Polynomial":
        terms: dict[Monomial, int] = {}
        for m, c in self.terms.items():
            for n, d in of(other).terms.items():
                product = tuple(sorted((*m, *n), key=key_of))
                terms[product] = terms.get(product, 0) + c * d
        return Polynomial({m: c for m, c in terms.items() if c})

    @property
    def number(self) -> int | None:
        """The value of a constant."""
        if not self.terms:
            return 0
        return self.terms.get((), None) if len(self.terms) == 1 else None

    @property
    def lone(self) -> Variable | None:
        """The variable that this is."""
        if len(self.terms) != 1:
            return None
        ((monomial, c),) = self.terms.items()
        return monomial[0] if c == 1 and len(monomial) == 1 else None

    @cached_property
    def variables(self) -> frozenset[str]:
        """The names in it, also within quotients and digits."""
        return frozenset(name for m in self.terms for v in m for name in _names(v))


def variables_in(p: Polynomial) -> Iterator[Variable]:
    """The variables in a polynomial, also within quotients and digits."""
    for v in (v for monomial in p.terms for v in monomial):
        yield v
        match v:
            case Quotient(a, b) | Remainder(a, b) | Extreme(_, a, b):
                yield from (*variables_in(a), *variables_in(b))
            case Digit(position, shape, _):
                yield from (w for q in (position, *shape) for w in variables_in(q))
            case _:
                pass


def _names(v: Variable) -> Iterable[str]:
    match v:
        case str():
            return (v,)
        case Index(name):
            return (name,)
        case Quotient(a, b) | Remainder(a, b) | Extreme(_, a, b):
            return a.variables | b.variables
        case Digit(position, shape, _):
            return position.variables.union(*(d.variables for d in shape))
        case _:
            return v.free


ZERO, ONE = Polynomial(), Polynomial({(): 1})


def of(value: "Polynomial | int") -> Polynomial:
    """A number as a polynomial."""
    if isinstance(value, Polynomial):
        return value
    return Polynomial({(): value}) if value else ZERO


def variable(v: Variable) -> Polynomial:
    """A variable as a polynomial."""
    return Polynomial({(v,): 1})


def product(factors: Iterable[Polynomial]) -> Polynomial:
    """The product; 1 of nothing."""
    result = ONE
    for factor in factors:
        result = result * factor
    return result


def substituted(p: Polynomial, by: Mapping[str, Polynomial], remake: "Remake") -> Polynomial:
    """`p` with polynomials for names; `remake` builds what is not a name."""
    if not by or p.variables.isdisjoint(by):
        return p
    result = ZERO
    for monomial, c in p.terms.items():
        term = of(c)
        for v in monomial:
            term = term * _replacement(v, by, remake)
        result = result + term
    return result


def _replacement(v: Variable, by: Mapping[str, Polynomial], remake: "Remake") -> Polynomial:
    if isinstance(v, str | Index):
        return by.get(key_of(v), variable(v))
    return remake(v, by)


Remake: TypeAlias = Callable[[Variable, Mapping[str, Polynomial]], Polynomial]


def of_dim(dim: Dim) -> Polynomial:
    """A dimension as a polynomial over its symbols."""
    return of(dim) if isinstance(dim, int) else fold(form(dim), _ALGEBRA)


def _quotient(a: Polynomial, b: Polynomial) -> Polynomial:
    return variable(Quotient(a, b))


def _remainder(a: Polynomial, b: Polynomial) -> Polynomial:
    return variable(Remainder(a, b))


def _least(a: Polynomial, b: Polynomial) -> Polynomial:
    return variable(Extreme(False, a, b))


def _greatest(a: Polynomial, b: Polynomial) -> Polynomial:
    return variable(Extreme(True, a, b))


_ALGEBRA: Algebra[Polynomial] = Algebra(
    of,
    variable,
    {
        "neg": operator.neg,
        "+": leftward(operator.add),
        "-": operator.sub,
        "*": leftward(operator.mul),
        "//": _quotient,
        "%": _remainder,
        "min": leftward(_least),
        "max": leftward(_greatest),
    },
)
