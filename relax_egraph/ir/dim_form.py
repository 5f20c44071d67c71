"""Reads the form of a sympy expression, in the order in which scripts write it."""

from functools import lru_cache
from typing import cast

import sympy

from relax_egraph.ir.form import Form, Operation, Operator
from relax_egraph.ir.multiples import quotient


def form(dim: int | sympy.Expr) -> Form:
    """The form of `dim`; raises ``ValueError`` if it is built of other functions or fractions."""
    return dim if isinstance(dim, int) else _form(dim)


@lru_cache(1 << 16)
def _form(e: sympy.Basic) -> Form:
    match e:
        case sympy.Symbol():
            return e.name
        case sympy.Integer():
            return int(e) if e >= 0 else Operation("neg", (-int(e),))
        case sympy.Add():
            return _sum(e)
        case sympy.Mul():
            return _product(e)
        case sympy.Pow(args=(base, sympy.Integer() as exponent)) if exponent > 0:
            return Operation("*", (_form(base),) * int(exponent))
        case sympy.floor():
            return Operation("//", tuple(map(_form, quotient(e))))
        case sympy.Mod():
            return Operation("%", tuple(map(_form, e.args)))
        case sympy.Min() | sympy.Max():
            name: Operator = "min" if isinstance(e, sympy.Min) else "max"
            return Operation(name, tuple(map(_form, sorted(e.args, key=str))))
        case _:
            raise ValueError(f"{e} is no dimension: it is not built of + - * // % min max")


def _sum(e: sympy.Add) -> Form:
    first, *others = cast(list[sympy.Expr], e.as_ordered_terms())
    total = _form(first)
    for term in others:
        is_negative = term.could_extract_minus_sign()
        sign: Operator = "-" if is_negative else "+"
        total = Operation(sign, (total, _form(-term if is_negative else term)))
    return total


def _product(e: sympy.Mul) -> Form:
    coefficient, rest = e.as_coeff_Mul()
    if not coefficient.is_Integer:
        raise ValueError(f"{e} is no dimension: it has a fraction")
    factors = list(map(_form, rest.as_ordered_factors()))
    if abs(coefficient) != 1:
        factors.append(abs(int(cast(sympy.Integer, coefficient))))
    if coefficient.is_negative:  # `-` binds tighter than `*`, `//` and `%`
        factors[0] = Operation("neg", (factors[0],))
    return factors[0] if len(factors) == 1 else Operation("*", tuple(factors))
