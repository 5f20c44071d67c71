"""A normal form of floors, in which equal roundings are the same expression.

(n - 1001) // 2 + 501            ->  (n + 1) // 2
(min(1000, n) + 1) // 2          ->  min(500, (n + 1) // 2)
((n + 1) // 2 + 2) // 3          ->  (n + 5) // 6
n - n % 4                        ->  4 * (n // 4)
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import cast

import sympy

from relax_egraph.ir.min_max import extreme
from relax_egraph.ir.symbol_ranges import integral

_MEMO = 1 << 14
_OTHER = {sympy.Min: sympy.Max, sympy.Max: sympy.Min}


def cancels(expr: sympy.Expr) -> bool:
    """Whether `expr`, with floors in normal form, is 0 by ``-⌊p / k⌋ = ⌊(k - 1 - p) / k⌋``."""
    for term in sympy.Add.make_args(expr):
        factor, inner = term.as_coeff_Mul()
        if factor != -1 or not isinstance(inner, sympy.floor):
            continue
        pairs = [t.as_coeff_Mul() for t in sympy.Add.make_args(inner.args[0])]
        if all(c.is_Rational and integral(t) for c, t in pairs):
            k = math.lcm(*(int(sympy.fraction(c)[1]) for c, _ in pairs))
            above = _floor(sympy.expand(sympy.Rational(k - 1, k) - inner.args[0]))
            if sympy.expand(expr - term + above) == 0:
                return True
    return False


@lru_cache(_MEMO)
def by_floors(expr: sympy.Expr) -> sympy.Expr:
    """`expr` with its floors in normal form; remainders by numbers become floors."""
    if not expr.has(sympy.floor, sympy.Mod):
        return expr
    parts = [by_floors(cast(sympy.Expr, a)) for a in expr.args]
    if isinstance(expr, sympy.floor):
        return _floor(sympy.expand(parts[0]))
    if isinstance(expr, sympy.Mod) and parts[1].is_Integer and parts[1].is_positive:
        whole, divisor = parts
        return sympy.expand(whole - divisor * _floor(sympy.expand(whole / divisor)))
    if isinstance(expr, sympy.Min | sympy.Max):
        return extreme(expr.func, parts)
    return sympy.expand(expr.func(*parts))


def _floor(value: sympy.Expr) -> sympy.Expr:
    """``⌊value⌋``: whole terms are in front of the floor, minima and floors are not inside it."""
    pairs = [term.as_coeff_Mul() for term in sympy.Add.make_args(value)]
    if not all(c.is_Rational and integral(t) for c, t in pairs):
        return sympy.floor(value)
    for c, t in pairs:
        if isinstance(t, sympy.Min | sympy.Max) and not c.is_Integer:  # rounding is monotone
            kind = t.func if c.is_positive else _OTHER[t.func]
            rest = value - c * t
            return extreme(kind, (_floor(sympy.expand(c * a + rest)) for a in t.args))
    whole = sympy.Add(*(sympy.floor(c) * t for c, t in pairs))
    broken = [(c - sympy.floor(c), t) for c, t in pairs if not c.is_Integer and t != 1]
    k = math.lcm(*(int(sympy.fraction(c)[1]) for c, _ in broken))
    for c, _ in (pair for pair in pairs if pair[1] == 1):
        step = sympy.floor((c - sympy.floor(c)) * k) / k  # all else is in steps of 1 / k
        broken += [(step, sympy.Integer(1))] if step else []
    if not broken:
        return sympy.expand(whole)
    return sympy.expand(whole + _of_fractions(broken))


def _of_fractions(pairs: Sequence[tuple[sympy.Expr, sympy.Expr]]) -> sympy.Expr:
    """``⌊Σ cₖ tₖ⌋`` of whole tₖ, with each cₖ between 0 and 1."""
    for k, (c, t) in enumerate(pairs):
        rest = sympy.Add(*(a * b for a, b in (*pairs[:k], *pairs[k + 1 :])))
        whole = all((a / c).is_Integer for a, _ in pairs)
        if isinstance(t, sympy.floor) and (1 / c).is_Integer and whole:
            return _floor(sympy.expand(c * t.args[0] + rest))  # ⌊(⌊u⌋ + j) / k⌋ = ⌊(u + j) / k⌋
    return sympy.floor(sympy.Add(*(c * t for c, t in pairs)))
