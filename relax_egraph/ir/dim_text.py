"""The text of dimensions in scripts: the arithmetic of Python, with min and max as calls."""

from functools import lru_cache
from typing import cast

import sympy

from relax_egraph.ir.braces import is_braced

_MEMO = 1 << 16


def text(dim: int | sympy.Expr) -> str:
    """`dim` as a script writes it: ``n * 4``, ``n // 2``, ``n % 8``, ``min(n, m)``."""
    if isinstance(dim, int):
        return str(dim)
    return f"{{{_whole_text(dim)}}}" if is_braced() else _whole_text(dim)


@lru_cache(_MEMO)
def _whole_text(dim: sympy.Expr) -> str:
    return _text(dim, 0)


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
