"""Tensors as functions from an index to an element, and indices and elements as each other."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from relax_egraph.ir.dims import Dim
from relax_egraph.prove import polynomial
from relax_egraph.prove.digits import Indices
from relax_egraph.prove.polynomial import Polynomial, of_dim
from relax_egraph.prove.sums import (
    Counted,
    Read,
    Sum,
    multiply,
    number,
    replaced_sum,
    single,
)


@dataclass(frozen=True, eq=False)
class Tensor:
    """A tensor: its shape and dtype, and the element at an index."""

    shape: tuple[Dim, ...]
    dtype: str
    at: Callable[[Indices], Sum]

    @cached_property
    def extents(self) -> tuple[Polynomial, ...]:
        """The shape as polynomials."""
        return tuple(map(of_dim, self.shape))


def operand(name: str, shape: Sequence[Dim], dtype: str) -> Tensor:
    """A tensor of which nothing is known but its shape and dtype."""
    extents = tuple(map(of_dim, shape))

    def at(index: Indices) -> Sum:
        return single(Read(name, dtype, tuple(index), extents))

    return Tensor(tuple(shape), dtype, at)


@dataclass(frozen=True)
class Place:
    """An element of an integer tensor, as an index."""

    value: Sum

    @property
    def key(self) -> str:
        """A text by which variables are sorted."""
        return f"at({self.value.key})"

    @property
    def free(self) -> frozenset[str]:
        """The names in it."""
        return self.value.free

    def replaced(self, by: Mapping[str, Polynomial]) -> Polynomial:
        """The element with polynomials for names."""
        return polynomial.variable(Place(replaced_sum(self.value, by)))


def counted(p: Polynomial) -> Sum:
    """An index as a number; a product is one of numbers."""
    if p.number is not None:
        return number(p.number)
    if len(p.terms) > 1:
        return single(Counted(p))
    ((monomial, c),) = p.terms.items()
    result = number(c)
    for v in monomial:
        result = multiply(result, single(Counted(polynomial.variable(v))))
    return result
