"""Equality of elements that are no sums, by the solver: minima, comparisons, choices."""

from collections.abc import Sequence
from typing import Any

from relax_egraph.prove.algebra import limits_of
from relax_egraph.prove.equality import Equality
from relax_egraph.prove.questions import ask, z3
from relax_egraph.prove.reals import Comparison
from relax_egraph.prove.sums import Sum
from relax_egraph.prove.translation import Assumption, Translation, Unknown, Wraps

EFFORT = 3_000_000
"""The steps for one question, in the solver's measure."""


class Pointwise:
    """Decides equality under what `equality` assumes of indices, and of numbers and elements."""

    def __init__(
        self,
        equality: Equality,
        numbers: Sequence[Comparison],
        bounds: Sequence[Assumption],
    ) -> None:
        self.equality = equality
        self.numbers = numbers
        self.bounds = bounds

    def equal(self, a: Sum, b: Sum, dtype: str) -> bool:
        """Whether two elements of `dtype` are proven equal."""
        for wide in (False, True):
            try:
                return self.decided(a, b, dtype, wide)
            except Wraps:
                continue
            except Unknown:
                return False
        return False

    def decided(self, a: Sum, b: Sum, dtype: str, bits: bool) -> bool:
        """Whether they are equal, with integers as bit vectors if `bits`."""
        into = Translation(self.equality, self.bounds, bits)
        return self.are_one(into, into.value(a, dtype), into.value(b, dtype))

    def is_number(self, a: Sum, number: Sum, dtype: str) -> bool:
        """Whether an integer, or a truth value as 0 or 1, is proven to be a number of the rule.

        That may be any real number: nothing is assumed of it because it stands for an integer.
        """
        into = Translation(self.equality, self.bounds, bits=False)
        try:
            x, y = into.value(a, dtype), into.value(number, "float64")
        except (Unknown, Wraps):
            return False
        return self.are_one(into, z3().If(x, 1, 0) if dtype == "bool" else x, y)

    def are_one(self, into: Translation, x: Any, y: Any) -> bool:
        """Whether two terms of the solver are proven equal."""
        for c in self.numbers:
            into.assume_comparison(c)
        where = [into.integers.condition(c) for c in self.equality.solver.assumed]
        terms = (*where, *into.integers.known, *into.assumed, x != y)
        return ask(terms, EFFORT) == "impossible"

    def within(self, number: Sum, dtype: str) -> bool:
        """Whether a number of a rule is proven to be within the range of a dtype."""
        into = Translation(self.equality, (), bits=False)
        try:
            x = into.value(number, "float64")
        except Unknown:
            return False
        for c in self.numbers:
            into.assume_comparison(c)
        least, most = limits_of(dtype)
        outside = z3().Or(x < least, x > most)
        return ask((*into.assumed, outside), EFFORT) == "impossible"
