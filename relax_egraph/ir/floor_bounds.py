"""Signs of sums with floors, which sympy does not know: ``n - (n + 1) // 2`` is 0 or more."""

import math

import sympy


def is_nonnegative(expr: sympy.Expr) -> bool | None:
    """Whether the expanded `expr` is 0 or more; ``None`` if it is not known."""
    known = expr.is_nonnegative
    if known is not None or not expr.has(sympy.floor) or not expr.is_integer:
        return known
    least, before = expr, None
    while least != before:  # a bound of a floor may contain another one
        before = least
        least = sympy.expand(sympy.Add(*map(_least, sympy.Add.make_args(before))))
    return True if (least + 1).is_positive else None  # it is an integer


def _least(term: sympy.Expr) -> sympy.Expr:
    """A lower bound of `term` without its floor: ``p / k - (k - 1) / k ≤ ⌊p / k⌋ ≤ p / k``."""
    coefficient, rest = term.as_coeff_Mul()
    if not isinstance(rest, sympy.floor):
        return term
    inside = rest.args[0]
    if coefficient.is_negative:
        return coefficient * inside
    pairs = [t.as_coeff_Mul() for t in sympy.Add.make_args(inside)]
    if not all(c.is_Rational and t.is_integer for c, t in pairs):
        return term
    k = math.lcm(*(int(sympy.fraction(c)[1]) for c, _ in pairs))
    return coefficient * (inside - sympy.Rational(k - 1, k))
