"""Piecewise linear expressions of one symbol: a few points decide whether they are 0.

max(0, n + min(1, n) - 1) - n    is 0 at n = 0, 1, 2, 3, 4; behind that it is linear
"""

from functools import lru_cache

import sympy

from relax_egraph.ir.dim_form import form
from relax_egraph.ir.form import INTEGERS, Algebra, fold

_MEMO = 1 << 14
_MOST = 128
"""The largest offset of a piece; expressions with larger ones are not decided."""


@lru_cache(_MEMO)
def vanishes(expr: sympy.Expr) -> bool:
    """Whether `expr` is proven to be 0 for every nonnegative value of its only symbol."""
    if len(expr.free_symbols) != 1 or not expr.has(sympy.Min, sympy.Max):
        return False
    offset = _largest_offset(expr)
    if offset is None or offset > _MOST:
        return False
    # Pieces a·n + b and c·n + d of different slope cross at |d - b| / |a - c| <= 2·offset.
    pieces = form(expr)
    points = range(2 * offset + 3)
    return all(fold(pieces, Algebra(int, lambda _, n=n: n, INTEGERS)) == 0 for n in points)


def _largest_offset(expr: sympy.Basic) -> int | None:
    """The largest ``|b|`` of pieces ``a·n + b``; ``None`` if there are others."""
    if isinstance(expr, sympy.Symbol):
        return 0
    if isinstance(expr, sympy.Integer):
        return abs(int(expr))
    offsets = [_largest_offset(a) for a in expr.args]
    known = [o for o in offsets if o is not None]
    if len(known) < len(offsets):
        return None
    match expr:
        case sympy.Add():
            return sum(known)
        case sympy.Mul(args=(sympy.Integer(), _)):
            return known[0] * known[1]
        case sympy.Min() | sympy.Max():
            return max(known)
        case _:
            return None
