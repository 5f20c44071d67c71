"""Dimensions as polynomials, compared without sympy: for frequent comparisons.

Factors are atoms, as scripts write dimensions: symbols, and what is no polynomial, as ``n // 2``.
Proofs hold for all nonnegative values of the symbols; they are sound and incomplete.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias, cast

import sympy

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim

Monomial: TypeAlias = tuple[str, ...]
"""The sorted factors of a term; a constant has none."""


@dataclass(frozen=True, slots=True)
class Polynomial:
    """A sum of `terms`, each with its coefficient, sorted; none has the coefficient 0."""

    terms: tuple[tuple[Monomial, int], ...] = ()

    def __add__(self, other: "Polynomial") -> "Polynomial":
        total = dict(self.terms)
        for monomial, coefficient in other.terms:
            total[monomial] = total.get(monomial, 0) + coefficient
        return from_terms(total)

    def __sub__(self, other: "Polynomial") -> "Polynomial":
        return self + other.times(-1)

    def __mul__(self, other: "Polynomial") -> "Polynomial":
        total: dict[Monomial, int] = {}
        for a, x in self.terms:
            for b, y in other.terms:
                monomial = tuple(sorted((*a, *b)))
                total[monomial] = total.get(monomial, 0) + x * y
        return from_terms(total)

    def times(self, factor: int) -> "Polynomial":
        """``factor · self``."""
        return from_terms({m: c * factor for m, c in self.terms})

    @property
    def constant(self) -> int | None:
        """The value of a constant, else ``None``."""
        match self.terms:
            case ():
                return 0
            case (((), value),):
                return value
            case _:
                return None

    @property
    def is_nonnegative(self) -> bool:
        """Whether this is proven to be 0 or more: no term is ever negative."""
        return all(c > 0 and all(map(_is_nonnegative, m)) for m, c in self.terms)

    def dim(self) -> Dim:
        """The dimension of this polynomial."""
        return _dim(self)

    def evaluate(self, values: Mapping[str, int]) -> int:
        """The value with the symbols at `values`; raises ``KeyError`` for one without."""
        total = 0
        for monomial, coefficient in self.terms:
            for atom in monomial:
                value = values.get(atom)
                coefficient *= dims.evaluate(dims.parse(atom), values) if value is None else value
            total += coefficient
        return total


def from_terms(terms: Mapping[Monomial, int] | Iterable[tuple[Monomial, int]]) -> Polynomial:
    """The sum of `terms`, whose factors are all different."""
    return Polynomial(tuple(sorted((m, c) for m, c in dict(terms).items() if c)))


def number(value: int) -> Polynomial:
    """A constant."""
    return Polynomial((((), value),) if value else ())


def atom(name: str) -> Polynomial:
    """One factor."""
    return Polynomial((((name,), 1),))


@lru_cache(1 << 14)
def polynomial(dim: Dim) -> Polynomial:
    """`dim` as a sum of products."""
    if isinstance(dim, int):
        return number(dim)
    total: dict[Monomial, int] = {}
    for term in sympy.Add.make_args(dim):
        coefficient, rest = term.as_coeff_Mul()
        factors = [] if rest == 1 else sympy.Mul.make_args(rest)
        monomial = tuple(sorted(name for f in factors for name in _atoms(f)))
        if not coefficient.is_Integer:  # with fractions, only the whole sum is an integer
            return atom(dims.text(dim))
        total[monomial] = total.get(monomial, 0) + int(cast(sympy.Integer, coefficient))
    return from_terms(total)


def _atoms(factor: sympy.Expr) -> list[str]:
    base, exponent = factor.as_base_exp()
    if exponent.is_Integer and exponent.is_positive:
        return [dims.text(base)] * int(cast(sympy.Integer, exponent))
    return [dims.text(factor)]


@lru_cache(1 << 14)
def _dim(value: Polynomial) -> Dim:
    total: Dim = 0
    for monomial, coefficient in value.terms:
        total = dims.add(total, dims.mul(coefficient, dims.product(map(dims.parse, monomial))))
    return total


@lru_cache(1 << 14)
def _is_nonnegative(name: str) -> bool:
    dim = dims.parse(name)
    return dim >= 0 if isinstance(dim, int) else dim.is_nonnegative is True
