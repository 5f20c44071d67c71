"""Equality of elements that are no sums, by the solver: minima, comparisons, choices."""

from collections.abc import Sequence

import numpy as np

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
        x, y = into.value(a, dtype), into.value(b, dtype)
        for c in self.numbers:
            into.assume_comparison(c)
        where = [into.integers.condition(c) for c in self.equality.solver.assumed]
        terms = (*where, *into.integers.known, *into.assumed, x != y)
        return ask(terms, EFFORT) == "impossible"

    def within(self, number: Sum, dtype: str) -> bool:
        """Whether a number of a rule is proven to be within the range of an integer dtype."""
        if dtype == "bool":
            return False
        into = Translation(self.equality, (), bits=False)
        try:
            x = into.value(number, "float64")
        except Unknown:
            return False
        for c in self.numbers:
            into.assume_comparison(c)
        limits = np.iinfo(dtype)
        outside = z3().Or(x < int(limits.min), x > int(limits.max))
        return ask((*into.assumed, outside), EFFORT) == "impossible"
