"""Upper bounds of symbols that a function declares, so that its memory is static.

R.func_attr({"tir_var_upper_bound": {"n": 512}})
"""

from collections.abc import Mapping
from typing import cast

import sympy

from relax_egraph.errors import IllFormed
from relax_egraph.ir import dims
from relax_egraph.ir.expr import Function
from relax_egraph.ir.polynomial import Polynomial, polynomial

ATTRIBUTE = "tir_var_upper_bound"


def upper_bounds(name: str, function: Function) -> dict[str, int]:
    """The bounds that `function` declares; raises `IllFormed` for a malformed attribute."""
    declared = function.attrs.get(ATTRIBUTE, ())
    match declared:
        case tuple() if all(_is_bound(pair) for pair in declared):
            return dict(cast(tuple[tuple[str, int], ...], declared))
        case _:
            needed = 'a dictionary of symbols and integers from 0 on, such as {"n": 512}'
            raise IllFormed(f"function {name!r}: {ATTRIBUTE} is {declared!r}, needs {needed}")


def _is_bound(pair: object) -> bool:
    match pair:
        case (str(), int(bound)):
            return bound >= 0 and not isinstance(bound, bool)
        case _:
            return False


def at_most(size: Polynomial, bounds: Mapping[str, int]) -> Polynomial:
    """An upper bound of `size` without the symbols of `bounds`; else `size` itself."""
    dim = size.dim()
    if isinstance(dim, int) or not dims.symbols(dim) & bounds.keys():
        return size
    most = _most(dim, {dims.symbol(name): bound for name, bound in bounds.items()})
    return size if most is None else polynomial(dims.canonical(most))


def _most(e: sympy.Expr, bounds: Mapping[sympy.Symbol, int]) -> sympy.Expr | None:
    """An upper bound of `e` over the other symbols; ``None`` if there is none."""
    if not cast(set[sympy.Symbol], e.free_symbols) & bounds.keys():
        return e
    if isinstance(e, sympy.Symbol):
        return sympy.Integer(bounds[e])
    coefficient, rest = e.as_coeff_Mul()
    if coefficient.is_negative:
        return sympy.Integer(0) if rest.is_nonnegative else None
    parts = cast(tuple[sympy.Expr, ...], e.args)
    if isinstance(e, sympy.Mod):
        return parts[1] - 1 if parts[1].is_Integer else None
    if isinstance(e, sympy.Pow):
        base = _most(parts[0], bounds)
        return None if base is None or not parts[0].is_nonnegative else base ** parts[1]
    if isinstance(e, sympy.Mul) and not all(p.is_nonnegative for p in parts):
        return None
    limits = [most for p in parts if (most := _most(p, bounds)) is not None]
    if not isinstance(e, _MONOTONE) or len(limits) < len(parts):
        return None
    return cast(sympy.Expr, e.func(*limits))


_MONOTONE = (sympy.Add, sympy.Mul, sympy.floor, sympy.Min, sympy.Max)
"""Operators that are monotone in each operand; products, of nonnegative operands."""
