"""Minima and maxima of expressions, without operands that another one is proven to dominate.

sympy decides eight comparisons for each pair of operands, which takes seconds for sums over a few
nested floors.  Here the sign of one difference decides each pair.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import TypeAlias, cast

import sympy

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


def _flat(kind: Kind, part: sympy.Expr) -> tuple[sympy.Expr, ...]:
    return cast(tuple[sympy.Expr, ...], part.args) if isinstance(part, kind) else (part,)


def _dominates(kind: Kind, a: sympy.Expr, b: sympy.Expr) -> bool:
    """Whether `a` dominates `b`, which is then redundant."""
    return _at_least(a, b) if kind is sympy.Max else _at_least(b, a)


@lru_cache(_MEMO)
def _at_least(a: sympy.Expr, b: sympy.Expr) -> bool:
    return a == b or sympy.expand(a - b).is_nonnegative is True
