"""Sums are equal if a map of their variables keeps the range: into it, and onto it."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relax_egraph.prove.conditions import Condition, Nonnegative
from relax_egraph.prove.effort import Effort
from relax_egraph.prove.equality import Equality
from relax_egraph.prove.polynomial import Index, Polynomial, Variable, of, variable
from relax_egraph.prove.solver import Solver
from relax_egraph.prove.sums import Folded, Read, Sum, Term

pytest.importorskip("z3", reason="proofs need z3-solver")

ZERO, N, M = of(0), variable("n"), variable("m")
PART = Index("i", of(2))
EXTENTS = (N, M, N + M, N + N, of(2))
BEGINS = (ZERO, of(1), N, M, variable(PART) * N)


@dataclass(frozen=True)
class Places:
    """``begin + k`` for ``k < extent``, backwards or not, as far as ``k`` is from `least` on."""

    name: str
    extent: Polynomial
    begin: Polynomial = ZERO
    is_backward: bool = False
    least: Polynomial = ZERO

    def term(self) -> Term:
        """What is read at the places, summed."""
        index = Index(self.name, self.extent)
        k = variable(index)
        at = self.begin + (self.extent - k - 1 if self.is_backward else k)
        where = () if self.least == ZERO else (Nonnegative(k - self.least),)
        read = Read("x", "float64", (at,), (N + N + M + M + 2,))
        return Term(Fraction(1), (read,), (index,), where)

    def sums(self) -> Sum:
        return Sum((self.term(),))

    def greatest(self) -> Sum:
        t = self.term()
        read = Sum((Term(Fraction(1), t.factors),))
        fold = Folded("max", t.binders, t.where, read, "float64")
        return Sum((Term(Fraction(1), (fold,)),))


Kind = Callable[[Places], Sum]


def equal(a: Sum, b: Sum) -> tuple[bool, bool]:
    """Whether they are proven equal, either way round."""
    one, other = (Equality(Solver(Effort(100_000)), []) for _ in range(2))
    return one.sums(a, b), other.sums(b, a)


@pytest.mark.parametrize("kind", [Places.sums, Places.greatest])
def test_a_part_is_not_the_whole_either_way_round(kind: Kind) -> None:
    whole = kind(Places("k", N + M))

    assert equal(whole, kind(Places("j", N))) == (False, False)
    assert equal(whole, kind(Places("j", N, M))) == (False, False)
    assert equal(kind(Places("k", N + N)), kind(Places("j", N, variable(PART) * N))) == (
        False,
        False,
    )
    assert equal(whole, kind(Places("j", N + M, is_backward=True))) == (True, True)


@pytest.mark.parametrize("kind", [Places.sums, Places.greatest])
def test_the_same_places_are_equal_either_way_round(kind: Kind) -> None:
    behind = kind(Places("k", N + M, least=M))

    assert equal(behind, kind(Places("j", N, M))) == (True, True)


# --- against numbers ------------------------------------------------------------------------


def number(p: Polynomial, at: Mapping[str, int]) -> int:
    return sum(
        c * math.prod(at[v if isinstance(v, str) else index_of(v).name] for v in monomial)
        for monomial, c in p.terms.items()
    )


def index_of(v: Variable) -> Index:
    assert isinstance(v, Index)
    return v


def seen(term: Term, at: Mapping[str, int]) -> Iterator[int]:
    """The places where a term reads, for values of what is free."""
    ranges = [range(number(b.extent, at)) for b in term.binders]
    (read,) = term.factors
    assert isinstance(read, Read)
    for values in product(*ranges):
        inside = {**at, **{b.name: v for b, v in zip(term.binders, values, strict=True)}}
        if all(holds(c, inside) for c in term.where):
            yield number(read.index[0], inside)


def holds(c: Condition, at: Mapping[str, int]) -> bool:
    assert isinstance(c, Nonnegative)
    return number(c.p, at) >= 0


def places(name: str) -> st.SearchStrategy[Places]:
    extents, begins = st.sampled_from(EXTENTS), st.sampled_from(BEGINS)
    return st.builds(Places, st.just(name), extents, begins, st.booleans(), begins)


@given(places("j"), places("k"))
def test_what_is_proven_equal_reads_the_same_places(a: Places, b: Places) -> None:
    if not any(equal(a.sums(), b.sums())):
        return
    for n, m, part in product(range(4), range(4), range(2)):
        at = {"n": n, "m": m, "i": part}
        assert sorted(seen(a.term(), at)) == sorted(seen(b.term(), at))
