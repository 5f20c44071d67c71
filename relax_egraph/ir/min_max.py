"""Minima and maxima of expressions, without operands that another one is proven to dominate.

sympy decides eight comparisons for each pair of operands, which takes seconds for sums over a few
nested floors.  Here the sign of one difference decides each pair.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import TypeAlias, cast

import sympy

from relax_egraph.ir.floor_bounds import is_nonnegative

_MEMO = 1 << 16

Kind: TypeAlias = type[sympy.Min] | type[sympy.Max]


def extreme(kind: Kind, parts: Iterable[sympy.Expr]) -> sympy.Expr:
    """``kind(*parts)``; the parts are expanded."""
    flat = [p for part in parts for p in _flat(kind, part)]
    if any(isinstance(p, sympy.Min | sympy.Max) for p in flat):
        return cast(sympy.Expr, kind(*flat))  # sympy has laws of minima of maxima
    kept: list[sympy.Expr] = []
    for part in flat:
        if not any(_dominates(kind, other, part) for other in kept):
            kept = [other for other in kept if not _dominates(kind, part, other)]
            kept.append(part)
    return cast(sympy.Expr, kind(*kept, evaluate=False))


def by_minima(expr: sympy.Expr) -> sympy.Expr:
    """`expr` with its minima and maxima in a normal form, in which equal ones cancel.

    That is ``max(a, b) = a + b - min(a, b)``; then `_minimum`.
    """
    if not expr.has(sympy.Min, sympy.Max):
        return expr
    first, *others = parts = [by_minima(cast(sympy.Expr, a)) for a in expr.args]
    if isinstance(expr, sympy.Min):
        return _minimum(parts)
    if not isinstance(expr, sympy.Max):
        return sympy.expand(expr.func(*parts))
    for other in others:
        first = sympy.expand(first + other - _minimum([first, other]))
    return first


def _minimum(parts: list[sympy.Expr]) -> sympy.Expr:
    """``min(a, k + 2·min(b, c)) = min(a, k + 2·b, k + 2·c)``, with one of these in front."""
    flat = list[sympy.Expr]()
    while parts:
        part = parts.pop()
        for term in sympy.Add.make_args(part):
            factor, inner = term.as_coeff_Mul()
            if isinstance(inner, sympy.Min) and factor.is_positive:
                parts += [sympy.expand(part - term + factor * a) for a in inner.args]
                break
        else:
            flat.append(part)
    least = extreme(sympy.Min, flat)
    if not isinstance(least, sympy.Min):
        return least
    kept = cast(tuple[sympy.Expr, ...], least.args)
    ways = [(a, extreme(sympy.Min, (sympy.expand(b - a) for b in kept))) for a in kept]
    front, rest = min(ways, key=lambda way: str(way[1]))
    return sympy.expand(front + rest)


def _flat(kind: Kind, part: sympy.Expr) -> tuple[sympy.Expr, ...]:
    return cast(tuple[sympy.Expr, ...], part.args) if isinstance(part, kind) else (part,)


def _dominates(kind: Kind, a: sympy.Expr, b: sympy.Expr) -> bool:
    """Whether `a` dominates `b`, which is then redundant."""
    return _at_least(a, b) if kind is sympy.Max else _at_least(b, a)


@lru_cache(_MEMO)
def _at_least(a: sympy.Expr, b: sympy.Expr) -> bool:
    return a == b or is_nonnegative(sympy.expand(a - b)) is True
