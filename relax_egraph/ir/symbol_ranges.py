"""Ranges of symbols under assumptions, and decisions on expressions over them.

A symbol ``n`` with ``n >= 3`` and ``n % 8 == 5`` is ``8·n' + 5``, where n' is any nonnegative
integer.  So an expression is decided over n' (`inward`), where sympy needs to know only that
symbols are nonnegative, and is written over n (`outward`).
"""

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import lru_cache, wraps
from math import gcd
from typing import Any, ParamSpec, TypeVar, cast

import sympy

from relax_egraph.ir.floor_bounds import is_nonnegative
from relax_egraph.ir.min_max import extreme
from relax_egraph.ir.multiples import quotient

P = ParamSpec("P")
R = TypeVar("R")

_MEMO = 1 << 16


@lru_cache(_MEMO)
def symbol(name: str) -> sympy.Symbol:
    """Return the dimension symbol `name`; it ranges over the nonnegative integers."""
    return sympy.Symbol(name, integer=True, nonnegative=True)


@dataclass(frozen=True, slots=True)
class Range:
    """The integers ``least, least + step, …`` up to `most`, which is one of them or ``None``."""

    least: int = 0
    step: int = 1
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Assumptions:
    """The range of each symbol, or its value over other symbols, which have no values.

    `texts` are the conditions of the user.
    """

    ranges: tuple[tuple[str, Range], ...] = ()
    values: tuple[tuple[str, sympy.Expr], ...] = ()
    texts: tuple[str, ...] = field(default=(), compare=False)

    def __bool__(self) -> bool:
        return bool(self.ranges or self.values)

    def about(self, names: Iterable[str]) -> "Assumptions":
        """The assumptions on the symbols `names` alone, for a function that has no others."""
        known = set(names)
        values = tuple(
            (name, value)
            for name, value in self.values
            if known.issuperset((name, *(s.name for s in _symbols(value))))
        )
        return replace(self, ranges=tuple(r for r in self.ranges if r[0] in known), values=values)


_ACTIVE: ContextVar[Assumptions | None] = ContextVar("assumptions", default=None)


def active() -> Assumptions | None:
    """The active assumptions."""
    return _ACTIVE.get()


@contextmanager
def assuming(assumptions: Assumptions | None) -> Generator[None]:
    """Decide dimensions inside under `assumptions`, and under no others."""
    token = _ACTIVE.set(assumptions or None)
    try:
        yield
    finally:
        _ACTIVE.reset(token)


def memoised(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, memoised separately for each set of active assumptions."""

    @lru_cache(_MEMO)
    def answer(_: Assumptions | None, *args: Any) -> R:
        return cast(Callable[..., R], function)(*args)

    @wraps(function)
    def wrapper(*args: P.args, **_: P.kwargs) -> R:
        return answer(_ACTIVE.get(), *args)

    return wrapper


@memoised
def inward(expr: sympy.Expr) -> sympy.Expr:
    """`expr` over symbols that range over the nonnegative integers, or up to a bound."""
    known = _ACTIVE.get()
    if known is None:
        return expr
    expr = replaced(expr, {symbol(name): value for name, value in known.values})
    expr = replaced(expr, {symbol(name): _over_offset(name, r) for name, r in known.ranges})
    return _narrowed(expr) if bounds() else expr


def outward(expr: sympy.Expr) -> sympy.Expr:
    """The inverse of `inward`; equal expressions have the same result.

    Where ``s = 8·s'``, ``s'`` is written ``s // 8``, and ``8·s'`` is ``s``.
    """
    known = _ACTIVE.get()
    for name, r in known.ranges if known else ():
        n, offset = symbol(name), _offset(name)
        exact = {offset: (n - r.least) / sympy.Integer(r.step)}
        rounded = {offset: sympy.floor(n / sympy.Integer(r.step)) - r.least // r.step}
        terms = list[sympy.Expr]()
        for term in sympy.Add.make_args(expr):
            written = replaced(term, exact)
            terms.append(written if integral(written) else replaced(term, rounded))
        expr = sympy.expand(sympy.Add(*terms))
    return expr


def bounds() -> dict[sympy.Symbol, sympy.Integer]:
    """The greatest values of the bounded symbols of `inward`."""
    known = _ACTIVE.get()
    return {
        _offset(name): sympy.Integer((r.most - r.least) // r.step)
        for name, r in (known.ranges if known else ())
        if r.most is not None
    }


def nonnegative(expr: sympy.Expr) -> bool:
    """Whether `expr`, which is `inward`, is proven to be 0 or more."""
    expr = sympy.expand(expr)
    known = is_nonnegative(expr)
    if known is not None:
        return known
    least = sympy.Add(*map(_least, sympy.Add.make_args(expr)))
    return least != expr and sympy.expand(least).is_nonnegative is True


def replaced(expr: sympy.Expr, by: Mapping[sympy.Symbol, sympy.Expr]) -> sympy.Expr:
    """`expr` with symbols replaced, all at once, and expanded.

    Common factors of the operands of a minimum or maximum are put in front of it: sympy considers
    ``max(2, 2·n) / 6`` an integer, but not ``max(1, n) / 3``.
    """
    return sympy.expand(_rebuilt(expr, by))


def _rebuilt(expr: sympy.Expr, by: Mapping[sympy.Symbol, sympy.Expr]) -> sympy.Expr:
    if isinstance(expr, sympy.Symbol):
        return by.get(expr, expr)
    if not expr.args:
        return expr
    parts = [_rebuilt(cast(sympy.Expr, a), by) for a in expr.args]
    if not isinstance(expr, sympy.Min | sympy.Max):
        return expr.func(*parts)
    reduced = extreme(expr.func, map(sympy.expand, parts))
    if not isinstance(reduced, sympy.Min | sympy.Max):
        return reduced
    parts = [sympy.expand(a) for a in reduced.args]
    numbers = [t.as_coeff_Mul()[0] for a in parts for t in sympy.Add.make_args(a)]
    common = gcd(*map(int, numbers)) if all(k.is_Integer for k in numbers) else 1
    if common == 1:
        return reduced
    return common * reduced.func(*(sympy.expand(a / common) for a in parts), evaluate=False)


def _least(term: sympy.Expr) -> sympy.Expr:
    """A lower bound of `term`; a negative one has it at the greatest values of its factors."""
    coefficient, rest = term.as_coeff_Mul()
    factors = sympy.Mul.make_args(rest)
    if not coefficient.is_negative or not all(f.is_nonnegative for f in factors):
        return term
    return sympy.Mul(coefficient, *map(_greatest, factors))


def _greatest(factor: sympy.Expr) -> sympy.Expr:
    """An upper bound of `factor`, which is nonnegative."""
    base, exponent = factor.as_base_exp()
    if isinstance(base, sympy.Symbol) and exponent.is_positive:
        return bounds().get(base, base) ** exponent
    parts = cast(tuple[sympy.Expr, ...], factor.args)
    if isinstance(factor, sympy.Mod) and parts[1].is_positive:
        return parts[1] - 1
    if isinstance(factor, sympy.floor):
        return sympy.floor(sympy.Add(*map(_most, sympy.Add.make_args(parts[0]))))
    return factor


def _most(term: sympy.Expr) -> sympy.Expr:
    coefficient, rest = term.as_coeff_Mul()
    factors = sympy.Mul.make_args(rest)
    if not coefficient.is_positive or not all(f.is_nonnegative for f in factors):
        return term
    return sympy.Mul(coefficient, *map(_greatest, factors))


_NARROWED = (sympy.Min, sympy.Max, sympy.Mod, sympy.floor)


def _narrowed(expr: sympy.Expr) -> sympy.Expr:
    """`expr`, simplified by bounds: ``min(n, 512)`` is n if ``n <= 512``."""
    if not expr.has(*_NARROWED):
        return expr

    def may_be_decided(e: sympy.Basic) -> bool:
        return isinstance(e, _NARROWED)

    return sympy.expand(expr.replace(may_be_decided, _decided))


def _decided(e: sympy.Expr) -> sympy.Expr:
    parts = cast(tuple[sympy.Expr, ...], e.args)
    if isinstance(e, sympy.Min | sympy.Max):
        sign = 1 if isinstance(e, sympy.Min) else -1
        kept = sorted(parts, key=str)
        for a in list(kept):
            if any(a != b and nonnegative(sign * (a - b)) for b in kept):
                kept.remove(a)
        return e.func(*kept)
    if isinstance(e, sympy.Mod):
        a, b = parts
        return a if nonnegative(a) and nonnegative(b - a - 1) else e
    a, b = quotient(e)
    return sympy.Integer(0) if nonnegative(a) and nonnegative(b - a - 1) else e


def _offset(name: str) -> sympy.Symbol:
    return symbol(f"{name}'")


def _over_offset(name: str, r: Range) -> sympy.Expr:
    if r.most == r.least:
        return sympy.Integer(r.least)
    return r.step * _offset(name) + r.least


def integral(e: sympy.Basic) -> bool:
    """Whether `e` is an integer by its form: with fractions in floors only."""
    if e.is_Rational:
        return bool(e.is_Integer)
    if isinstance(e, sympy.floor):
        return all(map(integral, quotient(e)))
    if isinstance(e, sympy.Pow) and not (e.exp.is_Integer and e.exp.is_positive):
        return False
    return all(map(integral, e.args))


def _symbols(expr: sympy.Expr) -> set[sympy.Symbol]:
    return cast(set[sympy.Symbol], expr.free_symbols)
