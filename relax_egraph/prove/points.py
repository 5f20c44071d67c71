"""Variables of sums that a condition leaves one value, which then stands in their place."""

from relax_egraph.prove.conditions import Condition, Nonnegative, Zero
from relax_egraph.prove.polynomial import ZERO, Index, Polynomial, variable
from relax_egraph.prove.sums import Sum, Term, add, replaced_term


def without_points(a: Sum) -> Sum:
    """`a` without variables of one value: ``Σ f(i)`` where ``i = v`` is ``f(v)`` if `v` is one."""
    result = Sum()
    for t in a.terms:
        result = add(result, Sum((_without(t),)))
    return result


def _without(t: Term) -> Term:
    for b in t.binders:
        value = next((v for c in t.where if (v := _value(b, c)) is not None), None)
        rest = tuple(other for other in t.binders if other.name != b.name)
        if value is None or any(b.name in other.extent.variables for other in rest):
            continue
        inside = (Nonnegative(value), Nonnegative(b.extent - 1 - value))
        fewer = Term(t.coefficient, t.factors, rest, (*t.where, *inside))
        return _without(_plain(replaced_term(fewer, {b.name: value})))
    return t


def _plain(t: Term) -> Term:
    """`t` without conditions of numbers that hold."""
    where = tuple(c for c in t.where if not (isinstance(c, Nonnegative) and _holds(c.p)))
    return Term(t.coefficient, t.factors, t.binders, where)


def _holds(p: Polynomial) -> bool:
    return p.number is not None and p.number >= 0


def _value(b: Index, c: Condition) -> Polynomial | None:
    """The only value from 0 to below the extent for which the condition may hold."""
    match c:
        case Nonnegative(p) if p == -variable(b):
            return ZERO
        case Nonnegative(p) if p == variable(b) - b.extent + 1:
            return b.extent - 1
        case Zero(p):
            for value in (variable(b) - p, variable(b) + p):
                if b.name not in value.variables:
                    return value
        case _:
            pass
    return None
