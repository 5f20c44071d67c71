"""Dimensions: nonnegative integers, concrete or symbolic.

A dimension is an ``int`` or a sympy expression over symbols that stand for
nonnegative integers.  Every function here returns the canonical form (expanded
polynomial, ``int`` where it is a number), so that equal dimensions compare ``==``.
Where the canonical form does not decide, `equal` and `prove_ge` ask sympy; answers are
memoised, and "cannot prove" is ``False``.

Within `assuming`, all answers hold under assumptions on the symbols (`ir.assumptions`).
"""

import ast
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from typing import TypeAlias, cast

import sympy

from relax_egraph.errors import IllTyped, RunError
from relax_egraph.ir.dim_text import text as text
from relax_egraph.ir.floors import by_floors, cancels
from relax_egraph.ir.form import Algebra, fold, leftward, read
from relax_egraph.ir.min_max import Kind, by_minima, extreme
from relax_egraph.ir.multiples import exact
from relax_egraph.ir.piecewise import vanishes
from relax_egraph.ir.symbol_ranges import (
    active,
    integral,
    inward,
    memoised,
    nonnegative,
    outward,
    replaced,
)
from relax_egraph.ir.symbol_ranges import symbol as symbol
from relax_egraph.ir.syntax import parsed_expression

Dim: TypeAlias = int | sympy.Expr
"""A dimension in canonical form."""

_MEMO = 1 << 16
_ROUNDS = 4
_MOST_TERMS = 512


@memoised
def _canonical(expr: sympy.Expr) -> Dim:
    evaluated = _evaluated(expr)
    if active() is not None and not evaluated.is_Integer:
        evaluated = _evaluated(outward(_evaluated(inward(evaluated))))
    return int(evaluated) if evaluated.is_Integer else evaluated


def _evaluated(expr: sympy.Expr) -> sympy.Expr:
    expanded = replaced(expr, {}) if expr.has(sympy.Min, sympy.Max) else sympy.expand(expr)
    for _ in range(_ROUNDS):
        if not expanded.has(sympy.Min, sympy.Max, sympy.floor, sympy.Mod):
            break
        # sympy leaves some operands of these unevaluated, as in Min(n, Max(1, 2))
        again = replaced(expanded, {})
        if again == expanded:
            break
        expanded = again
    return exact(expanded)


def canonical(dim: "Dim | sympy.Basic") -> Dim:
    """Return `dim` in canonical form; two equal polynomials give the same object."""
    if isinstance(dim, int):
        return int(dim)
    return _canonical(cast(sympy.Expr, dim))


def add(a: Dim, b: Dim) -> Dim:
    """``a + b``."""
    return canonical(a + b)


def sub(a: Dim, b: Dim) -> Dim:
    """``a - b``; the caller knows that it is not negative."""
    return canonical(a - b)


def mul(a: Dim, b: Dim) -> Dim:
    """``a · b``; raises `IllTyped` if the product may have more than `_MOST_TERMS` terms."""
    count = _terms(a) * _terms(b)
    if count > _MOST_TERMS:
        raise IllTyped(f"an extent is the product of sums: it has up to {count} terms")
    return canonical(a * b)


def _terms(dim: Dim) -> int:
    return len(dim.args) if isinstance(dim, sympy.Add) else 1


def product(dims: Iterable[Dim]) -> Dim:
    """The product of all dimensions, 1 of none: the number of elements of a shape."""
    result: Dim = 1
    for dim in dims:
        result = mul(result, dim)
    return result


@memoised
def floordiv(a: Dim, b: Dim) -> Dim:
    """``⌊a / b⌋``."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    quotient = sympy.sympify(a) / b
    if isinstance(b, sympy.Add) and divides(b, a):  # sympy cancels no sums
        return canonical(sympy.cancel(quotient))
    return canonical(sympy.floor(quotient))


@memoised
def mod(a: Dim, b: Dim) -> Dim:
    """``a mod b``, with the sign of `b`."""
    if isinstance(a, int) and isinstance(b, int):
        return a % b
    return canonical(sympy.Mod(a, b))


@memoised
def minimum(*of: Dim) -> Dim:
    """The least of several."""
    return _extreme(sympy.Min, of)


def _extreme(kind: Kind, of: Sequence[Dim]) -> Dim:
    numbers = [d for d in of if isinstance(d, int)]
    if len(numbers) == len(of):
        return max(numbers) if kind is sympy.Max else min(numbers)
    return canonical(extreme(kind, map(sympy.sympify, of)))


@memoised
def maximum(*of: Dim) -> Dim:
    """The greatest of several."""
    return _extreme(sympy.Max, of)


@memoised
def equal(a: Dim, b: Dim) -> bool:
    """Whether `a` and `b` are proven equal for every value of their symbols."""
    if a == b:
        return True
    if isinstance(a, int) and isinstance(b, int):
        return False
    difference = _difference(a, b)
    if vanishes(difference):
        return True
    difference = by_minima(by_floors(difference))
    if difference.is_polynomial():
        return sympy.expand(difference) == 0
    return _simplified(difference) == 0 or cancels(difference)


@memoised
def distinct(a: Dim, b: Dim) -> bool:
    """Whether `a` and `b` are proven to differ for every value of their symbols."""
    if isinstance(a, int) and isinstance(b, int):
        return a != b
    difference = _difference(a, b)
    if _simplified(difference).is_zero is False:
        return True
    return nonnegative(difference - 1) or nonnegative(-difference - 1)


@memoised
def prove_ge(a: Dim, b: Dim) -> bool:
    """Whether ``a >= b`` is proven for every value of their symbols."""
    if isinstance(a, int) and isinstance(b, int):
        return a >= b
    difference = _difference(a, b)
    if nonnegative(difference):
        return True
    # of a polynomial sympy finds factors, which `nonnegative` would expand again
    return not difference.is_polynomial() and nonnegative(_simplified(difference))


@memoised
def divides(a: Dim, b: Dim) -> bool:
    """Whether `b` is proven to be a multiple of `a`."""
    if isinstance(a, int) and isinstance(b, int):
        return a != 0 and b % a == 0
    divisor = inward(sympy.sympify(a))
    if divisor == 0:
        return False
    quotient = inward(sympy.sympify(b)) / divisor
    # by a number nothing cancels
    return integral(sympy.expand(quotient if divisor.is_Integer else sympy.cancel(quotient)))


def _difference(a: Dim, b: Dim) -> sympy.Expr:
    """``a - b`` under the active assumptions."""
    return inward(sympy.sympify(a) - b)


def _simplified(expr: sympy.Expr) -> sympy.Expr:
    """`expr`, simplified by sympy.

    Factors of a polynomial decide no more than its terms.  sympy has no laws of minima, and is very
    slow where they nest.
    """
    if expr.is_polynomial() or expr.has(sympy.Min, sympy.Max):
        return expr
    return sympy.simplify(expr)


@lru_cache(_MEMO)
def symbols(dim: Dim) -> frozenset[str]:
    """The names of the symbols in `dim`."""
    if isinstance(dim, int):
        return frozenset()
    return frozenset(cast(sympy.Symbol, s).name for s in dim.free_symbols)


def substitute(dim: Dim, values: Mapping[str, Dim]) -> Dim:
    """Replace symbols by dimensions, all at once; other symbols stay."""
    if isinstance(dim, int):
        return dim
    by = {symbol(name): sympy.sympify(value) for name, value in values.items()}
    return canonical(replaced(dim, by))


def evaluate(dim: Dim, values: Mapping[str, int]) -> int:
    """The value of `dim`.

    Raises ``KeyError`` with the name of a symbol without one, `RunError` if `dim` has no value.
    """
    if isinstance(dim, int):
        return dim
    names = symbols(dim)
    for name in names:
        if name not in values:
            raise KeyError(name)
    return _value(dim, tuple((name, values[name]) for name in names))


@lru_cache(_MEMO)
def _value(dim: sympy.Expr, values: tuple[tuple[str, int], ...]) -> int:
    try:
        result = substitute(dim, dict(values))
    except ZeroDivisionError:
        result = sympy.nan
    if isinstance(result, int):
        return result
    if not result.is_finite:
        raise RunError(f"the dimension {text(dim)} divides by zero")
    return math.floor(float(result))


# --- form -----------------------------------------------------------------------------

ALGEBRA: Algebra[Dim] = Algebra(
    int,
    symbol,
    {
        "neg": partial(mul, -1),
        "+": add,
        "-": sub,
        "*": leftward(mul),
        "//": floordiv,
        "%": mod,
        "min": minimum,
        "max": maximum,
    },
)
"""The dimensions themselves."""


def from_ast(node: ast.expr) -> Dim:
    """Read a parsed expression; a name is a symbol.  Raises ``ValueError`` on anything else."""
    return fold(read(node, _name), ALGEBRA)


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    raise ValueError(
        f"`{ast.unparse(node)}` is no dimension: it is not built of + - * // % min max"
    )


@memoised
def parse(source: str) -> Dim:
    """The inverse of `text`: ``parse(text(d)) == d``."""
    return from_ast(parsed_expression(source))
