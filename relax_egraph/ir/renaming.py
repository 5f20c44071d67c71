"""A one-to-one renaming of dimension symbols, discovered while two programs are compared."""

from itertools import permutations
from math import factorial
from typing import cast

import sympy

from relax_egraph.ir import dims

_TRIALS = 120
"""The number of pairings of symbols inside of products and sums that are tried."""


class Renaming:
    """A renaming that grows pair by pair; contradicting pairs are refused."""

    def __init__(self) -> None:
        self._to: dict[str, str] = {}
        self._from: dict[str, str] = {}

    def match(self, a: str, b: str) -> bool:
        """Rename symbol `a` to `b` from now on; whether that is possible."""
        if a not in self._to and b not in self._from:
            self._to[a], self._from[b] = b, a
        return self._to.get(a) == b

    def decides(self, a: sympy.Expr, b: sympy.Expr) -> bool:
        """Whether `unify` need not guess: `a` is a symbol, or all its symbols are paired."""
        return isinstance(a, sympy.Symbol) or not self._unpaired(a, b)[0]

    def unify(self, a: sympy.Expr, b: sympy.Expr) -> bool:
        """Extend this renaming so that `a` equals `b`; whether that is possible."""
        if isinstance(a, sympy.Symbol) and isinstance(b, sympy.Symbol):
            return self.match(a.name, b.name)
        ours, theirs = self._unpaired(a, b)
        if len(ours) != len(theirs) or factorial(len(ours)) > _TRIALS:
            return False
        for order in permutations(theirs):
            pairs = dict(zip(ours, order, strict=True))
            names = {**self._to, **pairs}
            values = {x: cast(dims.Dim, dims.symbol(names[x])) for x in dims.symbols(a)}
            if dims.equal(dims.substitute(a, values), b):
                for x, y in pairs.items():
                    self.match(x, y)
                return True
        return False

    def _unpaired(self, a: sympy.Expr, b: sympy.Expr) -> tuple[list[str], list[str]]:
        ours = sorted(dims.symbols(a) - self._to.keys())
        theirs = sorted(dims.symbols(b) - self._from.keys())
        return ours, theirs
