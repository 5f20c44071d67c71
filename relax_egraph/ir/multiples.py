"""Exact quotients: ``32 · (p // 32)`` is ``p`` where p is a multiple of 32.

So an extent that is padded to whole chunks, ``p = n + (-n mod 32)``, is that of the joined chunks.
"""

from functools import lru_cache
from typing import cast

import sympy


@lru_cache(1 << 14)
def exact(expr: sympy.Expr) -> sympy.Expr:
    """`expr`, an expanded sum, without the floors of exact quotients that are multiplied back."""
    if not expr.has(sympy.floor) or not expr.has(sympy.Mod):
        return expr
    terms = sympy.Add.make_args(expr)
    changed = [_multiplied(t) for t in terms]
    return sympy.expand(sympy.Add(*changed)) if tuple(changed) != terms else expr


def _multiplied(term: sympy.Expr) -> sympy.Expr:
    coefficient, rest = term.as_coeff_Mul()
    for factor in sympy.Mul.make_args(rest):
        if isinstance(factor, sympy.floor):
            whole, parts = quotient(factor)
            if _divides(parts, coefficient) and _divides(parts, _remaining(whole, parts)):
                return term / factor * whole / parts
    return term


def quotient(rounded: sympy.Expr) -> tuple[sympy.Expr, sympy.Expr]:
    """The numerator and the divisor of ``⌊a / b⌋``."""
    return sympy.fraction(sympy.together(rounded.args[0]))


def _divides(number: sympy.Expr, expr: sympy.Expr) -> bool:
    """Whether each coefficient of `expr` is a multiple of `number`."""
    if not number.is_Integer:
        return False
    coefficients = (t.as_coeff_Mul()[0] for t in sympy.Add.make_args(sympy.expand(expr)))
    return all((c / number).is_Integer for c in coefficients)


def _remaining(expr: sympy.Expr, number: sympy.Expr) -> sympy.Expr:
    """An expression that is congruent to `expr` modulo `number`, without remainders by it."""

    def is_rest(e: sympy.Basic) -> bool:
        return isinstance(e, sympy.Mod) and e.args[1] == number

    def dividend(e: sympy.Basic) -> sympy.Basic:
        return e.args[0]

    return cast(sympy.Expr, expr.replace(is_rest, dividend))
