"""What is known of symbolic extents: equations are solved for a symbol, the rest are conditions.

A solution changes everything that is made of the symbol: `Again` says that the run has to begin
again with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import sympy

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.prove.choices import Choices, Impossible
from relax_egraph.prove.conditions import Condition, Negation, Nonnegative, Zero
from relax_egraph.prove.polynomial import of_dim


class Again(Exception):
    """A symbol has a value now: what was made of it is to be made again."""


@dataclass
class Extents:
    """The solved symbols, and conditions on the others."""

    choices: Choices
    solved: dict[str, Dim] = field(default_factory=dict[str, Dim])
    conditions: list[Condition] = field(default_factory=list[Condition])

    def symbol(self, name: str) -> Dim:
        """A symbol, or its value."""
        return self.solved.get(name, dims.symbol(name))

    def of(self, value: Any) -> Any:
        """An attribute, or a part of one, with values for the symbols that are solved."""
        if isinstance(value, tuple):
            parts: tuple[Any, ...] = value
            return tuple(map(self.of, parts))
        return dims.substitute(value, self.solved) if isinstance(value, sympy.Expr) else value

    def equate(self, a: Dim, b: Dim) -> None:
        """Assume ``a = b``."""
        if dims.equal(a, b):
            return
        if dims.distinct(a, b):
            raise Impossible
        difference = sympy.expand(sympy.sympify(a) - b)
        if difference.is_polynomial():
            self.vanish(difference)
            open_ = _factors(difference)
            for f in open_[:-1]:
                if self.choices.of(f"{f} is 0", (False, True)):
                    self.equate(dims.canonical(f), 0)
                    return
                if f.is_Symbol:
                    self.solve(str(f), dims.add(self.symbol(f"{f}_"), 1))
                self.note(Negation(Zero(of_dim(dims.canonical(f)))))
            if not open_:
                raise Impossible
            self.vanish(sympy.expand(open_[-1]))
            difference = sympy.expand(open_[-1])
        self.note(Zero(of_dim(dims.canonical(difference))))

    def vanish(self, difference: Any) -> None:
        """Solve ``difference = 0`` for a symbol, if it has a nonnegative value."""
        if found := _solution(difference):
            self.solve(*found)

    def at_least(self, a: Dim, b: Dim) -> None:
        """Assume ``a >= b``."""
        if dims.prove_ge(a, b):
            return
        if dims.prove_ge(dims.sub(b, 1), a):
            raise Impossible
        difference: Any = sympy.expand(sympy.sympify(a) - b)
        symbols = difference.free_symbols if difference.is_polynomial() else ()
        for s in sorted(symbols, key=_late_first):
            c = difference.coeff(s, 1)
            if c == 1 and sympy.degree(difference, s) == 1:
                more = sympy.Symbol(f"{s}_m")
                value = sympy.expand(s - difference) + dims.symbol(str(more))
                if dims.prove_ge(dims.canonical(value), 0):
                    self.solve(str(s), dims.canonical(value))
        self.from_one(difference)
        self.note(Nonnegative(of_dim(dims.canonical(difference))))

    def from_one(self, difference: Any) -> None:
        """Where ``a + n >= b``, `b` is 0, or one more than a symbol, of which `a` is solved."""
        names = sorted(difference.free_symbols, key=_late_first)
        for a, b in (names, names[::-1]) if len(names) == 2 else ():
            n = difference - a + b
            if n.is_Integer and n > 0:
                if self.choices.of(f"{b} is 0", (False, True)):
                    self.solve(str(b), 0)
                self.solve(str(b), dims.add(self.symbol(f"{b}_"), 1))

    def divides(self, a: Dim, b: Dim) -> None:
        """Assume that `b` is a multiple of `a`."""
        if dims.divides(a, b):
            return
        if isinstance(a, int) and isinstance(b, int):
            raise Impossible
        known = dims.prove_ge(a, 0) and dims.prove_ge(b, 0)
        if not known and self.choices.of(f"({b})/({a}) is negative", (False, True)):
            a = dims.mul(a, -1)
        if isinstance(b, sympy.Symbol):
            self.solve(str(b), dims.mul(a, self.symbol(f"{b}_q")))
        factor = dims.symbol(f"({dims.text(b)})/({dims.text(a)})")
        self.note(Zero(of_dim(dims.sub(b, dims.mul(a, factor)))))

    def note(self, c: Condition) -> None:
        """Assume a condition that no symbol solves."""
        if c not in self.conditions:
            self.conditions.append(c)

    def solve(self, name: str, value: Dim) -> None:
        """Begin again with a value for a symbol."""
        self.solved = {k: dims.substitute(v, {name: value}) for k, v in self.solved.items()}
        self.solved[name] = value
        raise Again


@lru_cache(1 << 14)
def _factors(difference: Any) -> Sequence[Any]:
    """The factors of a polynomial that may be 0."""
    factors = [f for f, _ in sympy.factor_list(difference)[1]]
    return [f for f in factors if not dims.prove_ge(dims.canonical(f), 1)]


@lru_cache(1 << 14)
def _solution(difference: Any) -> tuple[str, Dim] | None:
    """A symbol of a polynomial that vanishes, and its value, if that is not negative."""
    first, *others = difference.as_ordered_terms()
    if len(others) == 1 and first.free_symbols and others[0] == -1:
        return min(map(str, first.free_symbols)), 1  # a product is 1: each factor is
    for s in sorted(difference.free_symbols, key=_late_first):
        c = difference.coeff(s, 1)
        if c not in (1, -1) or sympy.degree(difference, s) != 1:
            continue
        value = dims.canonical(sympy.expand(s - difference * c))
        if dims.prove_ge(value, 0):
            return str(s), value
    return None


def _late_first(s: sympy.Basic) -> tuple[int, str]:
    return (-len(str(s)), str(s))
