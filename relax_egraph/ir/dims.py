"""Dimensions: nonnegative integers, concrete or symbolic.

A dimension is an ``int`` or a sympy expression over symbols that stand for
nonnegative integers.  Every function here returns the canonical form (expanded
polynomial, ``int`` where it is a number), so that equal dimensions compare ``==``.
What canonical form does not decide is asked of sympy by `equal` and `prove_ge`;
answers are memoised, and "cannot prove" is ``False``.
"""

import ast
import math
from collections.abc import Iterable, Mapping
from functools import lru_cache, reduce
from typing import TypeAlias, cast

import sympy

from relax_egraph.errors import RunError

Dim: TypeAlias = int | sympy.Expr
"""A dimension in canonical form."""

_MEMO = 1 << 16
_ROUNDS = 4


@lru_cache(_MEMO)
def symbol(name: str) -> sympy.Symbol:
    """Return the dimension symbol `name`; it ranges over the nonnegative integers."""
    return sympy.Symbol(name, integer=True, nonnegative=True)


@lru_cache(_MEMO)
def _canonical(expr: sympy.Expr) -> Dim:
    expanded = sympy.expand(expr)
    for _ in range(_ROUNDS):
        if not expanded.has(sympy.Min, sympy.Max, sympy.floor, sympy.Mod):
            break
        # sympy leaves some of what it builds inside of these unevaluated, as in Min(n, Max(1, 2))
        again = sympy.expand(expanded.doit())
        if again == expanded:
            break
        expanded = again
    return int(expanded) if expanded.is_Integer else expanded


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
    """``a · b``."""
    return canonical(a * b)


def product(dims: Iterable[Dim]) -> Dim:
    """The product of all dimensions, 1 of none: the number of elements of a shape."""
    result: Dim = 1
    for dim in dims:
        result = mul(result, dim)
    return result


@lru_cache(_MEMO)
def floordiv(a: Dim, b: Dim) -> Dim:
    """``⌊a / b⌋``."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    return canonical(sympy.floor(sympy.sympify(a) / b))


@lru_cache(_MEMO)
def mod(a: Dim, b: Dim) -> Dim:
    """``a mod b``, with the sign of `b`."""
    if isinstance(a, int) and isinstance(b, int):
        return a % b
    return canonical(sympy.Mod(a, b))


@lru_cache(_MEMO)
def minimum(a: Dim, b: Dim) -> Dim:
    """``min(a, b)``."""
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    return canonical(sympy.Min(a, b))


@lru_cache(_MEMO)
def maximum(a: Dim, b: Dim) -> Dim:
    """``max(a, b)``."""
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    return canonical(sympy.Max(a, b))


@lru_cache(_MEMO)
def equal(a: Dim, b: Dim) -> bool:
    """Whether `a` and `b` are proven equal for every value of their symbols."""
    if a == b:
        return True
    if isinstance(a, int) and isinstance(b, int):
        return False
    return sympy.simplify(sympy.sympify(a) - b) == 0


@lru_cache(_MEMO)
def distinct(a: Dim, b: Dim) -> bool:
    """Whether `a` and `b` are proven to differ for every value of their symbols."""
    if isinstance(a, int) and isinstance(b, int):
        return a != b
    return sympy.simplify(sympy.sympify(a) - b).is_zero is False


@lru_cache(_MEMO)
def prove_ge(a: Dim, b: Dim) -> bool:
    """Whether ``a >= b`` is proven for every value of their symbols."""
    if isinstance(a, int) and isinstance(b, int):
        return a >= b
    return sympy.simplify(sympy.sympify(a) - b).is_nonnegative is True


@lru_cache(_MEMO)
def divides(a: Dim, b: Dim) -> bool:
    """Whether `b` is proven to be a multiple of `a`."""
    if isinstance(a, int) and isinstance(b, int):
        return a != 0 and b % a == 0
    return a != 0 and sympy.simplify(sympy.sympify(b) / a).is_integer is True


def symbols(dim: Dim) -> frozenset[str]:
    """The names of the symbols in `dim`."""
    if isinstance(dim, int):
        return frozenset()
    return frozenset(cast(sympy.Symbol, s).name for s in dim.free_symbols)


def substitute(dim: Dim, values: Mapping[str, Dim]) -> Dim:
    """Replace symbols by dimensions, all at once; others stay."""
    if isinstance(dim, int):
        return dim
    replaced = dim.subs({symbol(name): value for name, value in values.items()}, simultaneous=True)
    return canonical(replaced)


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


# --- text: the arithmetic of Python, with min and max as calls ----------------------


@lru_cache(_MEMO)
def text(dim: Dim) -> str:
    """`dim` as script writes it: ``n * 4``, ``n // 2``, ``n % 8``, ``min(n, m)``."""
    return str(dim) if isinstance(dim, int) else _text(dim, 0)


_SUM, _TERM, _ATOM = 1, 2, 3


def _wrap(written: str, level: int, around: int) -> str:
    return f"({written})" if level < around else written


def _text(e: sympy.Basic, around: int) -> str:
    if isinstance(e, sympy.Symbol):
        return e.name
    if e.is_Integer:
        return str(e) if int(cast(sympy.Integer, e)) >= 0 else _wrap(str(e), _SUM, around)
    if isinstance(e, sympy.Add):
        return _wrap(_sum(e), _SUM, around)
    if isinstance(e, sympy.Mul):
        return _product(e, around)
    if isinstance(e, sympy.Pow):
        base, exponent = e.args
        if exponent.is_Integer and int(cast(sympy.Integer, exponent)) > 0:
            factor = _text(base, _ATOM)
            return _wrap(" * ".join([factor] * int(cast(sympy.Integer, exponent))), _TERM, around)
    if isinstance(e, sympy.floor):
        numerator, denominator = sympy.fraction(sympy.together(e.args[0]))
        return _wrap(f"{_text(numerator, _TERM)} // {_text(denominator, _ATOM)}", _TERM, around)
    if isinstance(e, sympy.Mod):
        a, b = e.args
        return _wrap(f"{_text(a, _TERM)} % {_text(b, _ATOM)}", _TERM, around)
    if isinstance(e, sympy.Min | sympy.Max):
        name = "min" if isinstance(e, sympy.Min) else "max"
        return f"{name}({', '.join(_text(a, 0) for a in sorted(e.args, key=str))})"
    raise ValueError(f"{e} is no dimension: it is not built of + - * // % min max")


def _sum(e: sympy.Add) -> str:
    written = ""
    for term in cast(list[sympy.Expr], e.as_ordered_terms()):
        negative = term.could_extract_minus_sign()
        if not written:
            written = _text(term, _SUM)
        else:
            written += f" {'-' if negative else '+'} {_text(-term if negative else term, _TERM)}"
    return written


def _product(e: sympy.Mul, around: int) -> str:
    coefficient, rest = e.as_coeff_Mul()
    if not coefficient.is_Integer:
        raise ValueError(f"{e} is no dimension: it has a fraction")
    if coefficient.is_negative:
        positive = -e  # `-` binds tighter than `//` and `%`
        body = _text(positive, _TERM if isinstance(positive, sympy.Mul) else _ATOM)
        return _wrap(f"-{body}", _SUM, around)
    factors = [_text(f, _ATOM) for f in rest.as_ordered_factors()]
    if coefficient != 1:
        factors.append(_text(coefficient, _ATOM))
    return _wrap(" * ".join(factors), _TERM, around)


_EXTREMES = {"min": minimum, "max": maximum}
_DIVISIONS = {"floordiv": floordiv, "floormod": mod}


def from_ast(node: ast.expr) -> Dim:
    """Read a parsed expression; a name is a symbol.  Raises ``ValueError`` on anything else."""
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return value
        case ast.Name(id=name):
            return symbol(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return mul(-1, from_ast(operand))
        case ast.BinOp(left=left, op=op, right=right):
            a, b = from_ast(left), from_ast(right)
            match op:
                case ast.Add():
                    return add(a, b)
                case ast.Sub():
                    return sub(a, b)
                case ast.Mult():
                    return mul(a, b)
                case ast.FloorDiv():
                    return floordiv(a, b)
                case ast.Mod():
                    return mod(a, b)
                case _:
                    pass
        case ast.Call(func=func, args=[first, second, *more]):
            name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
            if name in _EXTREMES:
                return reduce(_EXTREMES[name], map(from_ast, (first, second, *more)))
            if name in _DIVISIONS and not more:
                return _DIVISIONS[name](from_ast(first), from_ast(second))
        case _:
            pass
    raise ValueError(
        f"`{ast.unparse(node)}` is no dimension: it is not built of + - * // % min max"
    )


@lru_cache(_MEMO)
def parse(written: str) -> Dim:
    """Read what `text` writes: ``parse(text(d)) == d``."""
    return from_ast(ast.parse(written, mode="eval").body)
