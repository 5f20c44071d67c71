"""Sums are equal if a map of their variables keeps the range: into it, and onto it."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import pytest

from relax_egraph.prove.conditions import Nonnegative
from relax_egraph.prove.effort import Effort
from relax_egraph.prove.equality import Equality
from relax_egraph.prove.polynomial import Index, Polynomial, of, variable
from relax_egraph.prove.solver import Solver
from relax_egraph.prove.sums import Folded, Read, Sum, Term

pytest.importorskip("z3", reason="proofs need z3-solver")

N, M = variable("n"), variable("m")
PART = variable(Index("i", of(2)))


def term(name: str, extent: Polynomial, begin: Polynomial) -> Term:
    """``x[begin + name]`` summed over ``name < extent``, for an `x` of ``n + m`` elements."""
    index = Index(name, extent)
    read = Read("x", "float64", (begin + variable(index),), (N + M,))
    return Term(Fraction(1), (read,), (index,), ())


def sums(name: str, extent: Polynomial, begin: Polynomial) -> Sum:
    return Sum((term(name, extent, begin),))


def maxima(name: str, extent: Polynomial, begin: Polynomial) -> Sum:
    t = term(name, extent, begin)
    fold = Folded("max", t.binders, (), Sum((Term(Fraction(1), t.factors),)), "float64")
    return Sum((Term(Fraction(1), (fold,)),))


def equal(a: Sum, b: Sum) -> tuple[bool, bool]:
    """Whether they are proven equal, either way round."""
    one, other = (Equality(Solver(Effort(100_000)), []) for _ in range(2))
    return one.sums(a, b), other.sums(b, a)


@pytest.mark.parametrize("kind", [sums, maxima])
def test_sums_over_all_and_over_a_part_differ_either_way_round(kind: Callable[..., Sum]) -> None:
    whole, part = kind("k", N + M, of(0)), kind("j", N, of(0))

    assert equal(whole, part) == (False, False)
    assert equal(whole, kind("j", N, M)) == (False, False)
    assert equal(kind("k", N + N, of(0)), kind("j", N, PART * N)) == (False, False)
    assert equal(whole, kind("j", N + M, of(0))) == (True, True)


def test_sums_of_the_same_places_are_equal_either_way_round() -> None:
    whole = term("k", N + M, of(0))
    from_m = Sum((replace(whole, where=(Nonnegative(variable(whole.binders[0]) - M),)),))

    assert equal(from_m, sums("j", N, M)) == (True, True)
