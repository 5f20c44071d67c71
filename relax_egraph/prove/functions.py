"""Functions of real numbers, in the one form that proofs compare.

Powers of e are one power for each product, quotients are inverses, and functions that others define
are written by those: ``tanh(x)`` is ``2 / (1 + e^(-2x)) - 1``.
"""

import math
from collections.abc import Callable, Mapping
from fractions import Fraction

from relax_egraph.prove.sums import (
    Applied,
    Factor,
    Sum,
    Term,
    add,
    apply,
    multiply,
    names_of_term,
    number,
    scale,
    single,
)

_LAMBDA, _ALPHA = 1.0507009873554805, 1.6732632423543772

_IRRATIONAL: Mapping[float, tuple[int, tuple[str, ...]]] = {
    math.sqrt(0.5): (1, ("√½",)),
    math.sqrt(2): (2, ("√½",)),
    math.sqrt(2 / math.pi): (1, ("√(2/π)",)),
    2 * math.sqrt(2 / math.pi): (2, ("√(2/π)",)),
    math.log(2): (1, ("ln 2",)),
    _LAMBDA: (1, ("λ of selu",)),
    _ALPHA: (1, ("α of selu",)),
    _LAMBDA * _ALPHA: (1, ("λ of selu", "α of selu")),
}
"""Irrational numbers, as a multiple of constants, by the double that is nearest to them."""

CONSTANTS = {names[0]: x for x, (c, names) in _IRRATIONAL.items() if (c, len(names)) == (1, 1)}
"""Positive real numbers, each with the double that is nearest to it."""


def real(value: float) -> Sum:
    """A number of a definition or a rule; an irrational one is what its double is nearest to."""
    if value in _IRRATIONAL:
        c, names = _IRRATIONAL[value]
        result = number(c)  # 2 · √½ · √½ = 1
        for name in names:
            result = multiply(result, apply(name))
        return result
    if math.isinf(value) or math.isnan(value):
        return apply("nan" if math.isnan(value) else "inf" if value > 0 else "-inf")
    return number(rational(value))


def joined(a: Sum) -> Sum:
    """`a`, in each term of which powers of e are one."""
    result = Sum()
    for t in a.terms:
        powers = [f for f in t.factors if isinstance(f, Applied) and f.function == "exp"]
        roots = [f for f in t.factors if isinstance(f, Applied) and f.function == "√½"]
        if len(powers) < 2 and len(roots) < 2:
            result = add(result, Sum((t,)))
            continue
        rest = [f for f in t.factors if f not in powers and f not in roots]
        total = Sum()
        for f in powers:
            total = add(total, f.args[0])
        more: list[Factor] = list(roots[: len(roots) % 2])
        c = t.coefficient * Fraction(1, 2) ** (len(roots) // 2)
        if total.terms:
            more.append(Applied("exp", (total,)))
        factors = tuple(sorted((*rest, *more), key=lambda f: f.key))
        result = add(result, Sum((Term(c, factors, t.binders, t.where),)))
    return result


def rational(value: float) -> Fraction:
    """The fraction with a small denominator that a double is nearest to, or its decimal text."""
    near = Fraction(value).limit_denominator(1000)
    return near if float(near) == value else Fraction(repr(value))


def squared(a: Sum) -> Sum:
    """`a`, where absolute values that are squared are squares."""
    if not any(isinstance(f, Applied) and f.function == "abs" for t in a.terms for f in t.factors):
        return a
    result = Sum()
    for t in a.terms:
        term = Sum((Term(t.coefficient, (), t.binders, t.where),))
        left = list(t.factors)
        while left:
            f = left.pop()
            if isinstance(f, Applied) and f.function == "abs" and f in left:
                left.remove(f)
                term = multiply(multiply(term, f.args[0]), f.args[0])
            else:
                term = multiply(term, single(f))
        result = add(result, term)
    return result


def times(a: Sum, b: Sum) -> Sum:
    """``a · b`` of real numbers."""
    return joined(squared(multiply(a, b)))


def inverse(a: Sum) -> Sum:
    """``1 / a``: of a product, the product of inverses."""
    if len(a.terms) == 1 and not a.terms[0].binders and not a.terms[0].where:
        (t,) = a.terms
        result = number(1 / t.coefficient)
        for f in t.factors:
            result = times(result, _inverse_of(f))
        return result
    shared, rest = without_power(a)
    return times(exp(scale(shared, -1)), apply("inverse", rest))


def without_power(a: Sum) -> tuple[Sum, Sum]:
    """``p`` and ``r`` with ``a = e^p · r``: one ``r`` for sums that differ by such a factor."""
    exponents = [_outer_exponent(t) for t in a.terms]
    if all(e is None for e in exponents):
        return Sum(), a
    ways: list[tuple[str, Sum, Sum]] = []
    for pivot in exponents:
        by = pivot or Sum()
        rest = times(exp(scale(by, -1)), a) if by.terms else a
        ways.append((rest.key, by, rest))
    _, by, rest = min(ways, key=lambda way: (len(way[0]), way[0]))
    return by, rest


def _outer_exponent(t: Term) -> Sum | None:
    """The part of the power of e in a term that its variables are not in."""
    names = {b.name for b in t.binders}
    for f in t.factors:
        if isinstance(f, Applied) and f.function == "exp":
            return Sum(tuple(x for x in f.args[0].terms if names.isdisjoint(names_of_term(x))))
    return None


def _inverse_of(f: Factor) -> Sum:
    if isinstance(f, Applied) and f.function == "√½":
        return scale(single(f), 2)
    if isinstance(f, Applied) and f.function == "inverse":
        return f.args[0]
    if isinstance(f, Applied) and f.function == "exp":
        return exp(scale(f.args[0], -1))
    return apply("inverse", single(f))


def exp(a: Sum) -> Sum:
    """``e^a``; of a logarithm of positive numbers, what that is of."""
    result, rest = number(1), Sum()
    for t in a.terms:
        f = t.factors[0] if len(t.factors) == 1 and not t.binders and not t.where else None
        known = isinstance(f, Applied) and f.function == "log" and is_positive(f.args[0])
        if isinstance(f, Applied) and known and abs(t.coefficient) == 1:
            result = times(result, f.args[0] if t.coefficient > 0 else inverse(f.args[0]))
        else:
            rest = add(rest, Sum((t,)))
    return times(result, apply("exp", rest)) if rest.terms else result


def log(a: Sum) -> Sum:
    """The natural logarithm."""
    if len(a.terms) == 1 and not a.terms[0].binders and not a.terms[0].where:
        (t,) = a.terms
        parts = [_log_of(f) for f in t.factors]
        if t.coefficient == 1 and t.factors and all(p is not None for p in parts):
            result = Sum()
            for p in parts:
                result = add(result, p or Sum())
            return result
        return apply("log", a)
    shared, rest = without_power(a)
    return add(shared, apply("log", rest))


def _log_of(f: Factor) -> Sum | None:
    """The logarithm of a factor that is positive by its form."""
    match f:
        case Applied("exp", (a,)):
            return a
        case Applied("inverse", (a,)) if is_positive(a):
            return scale(log(a), -1)
        case _:
            return None


def is_positive(a: Sum) -> bool:
    """Whether a sum is of positive numbers, and powers of e, or of no terms."""
    return bool(a.terms) and all(
        t.coefficient > 0 and all(isinstance(f, Applied) and f.function == "exp" for f in t.factors)
        for t in a.terms
    )


def sqrt(a: Sum) -> Sum:
    """The square root; of a square, the absolute value."""
    if a.number is not None and a.number in (0, 1):
        return a
    f = a.factor
    if isinstance(f, Applied) and f.function == "inverse":
        return inverse(sqrt(f.args[0]))
    if len(a.terms) == 1 and not a.terms[0].binders and not a.terms[0].where:
        (t,) = a.terms
        c, half = _root(t.coefficient), t.factors[::2]
        if c is not None and half and half == t.factors[1::2]:
            return absolute(Sum((Term(c, half),)))
    return apply("sqrt", a)


def _root(c: Fraction) -> Fraction | None:
    if c < 0:
        return None
    top, bottom = math.isqrt(c.numerator), math.isqrt(c.denominator)
    return Fraction(top, bottom) if Fraction(top * top, bottom * bottom) == c else None


def absolute(a: Sum) -> Sum:
    """``|a|``, which is ``|-a|``."""
    if a.number is not None:
        return number(abs(a.number))
    first = min(a.terms, key=lambda t: t.key, default=None)
    return apply("abs", scale(a, -1) if first and first.coefficient < 0 else a)


def sigmoid(a: Sum) -> Sum:
    """``1 / (1 + e^-a)``."""
    return inverse(add(number(1), exp(scale(a, -1))))


def tanh(a: Sum) -> Sum:
    """The hyperbolic tangent."""
    return add(scale(sigmoid(scale(a, 2)), 2), number(-1))


def power(a: Sum, b: Sum) -> Sum:
    """``a^b``: of small whole numbers a product, of halves a root."""
    n = b.number
    if n is None or n.denominator > 2 or abs(n) > 8:
        return apply("power", a, b)
    base = sqrt(a) if n.denominator == 2 else a
    result = number(1)
    for _ in range(abs(n.numerator)):
        result = times(result, base)
    return inverse(result) if n < 0 else result


def _erf(a: Sum) -> Sum:
    return apply("erf", a)


def _rsqrt(a: Sum) -> Sum:
    return inverse(sqrt(a))


def _expm1(a: Sum) -> Sum:
    return add(exp(a), number(-1))


def _log1p(a: Sum) -> Sum:
    return log(add(number(1), a))


def _fma(a: Sum, b: Sum, c: Sum) -> Sum:
    return add(times(a, b), c)


def _log_add_exp(a: Sum, b: Sum) -> Sum:
    return log(add(exp(a), exp(b)))


FUNCTIONS: Mapping[str, Callable[..., Sum]] = {
    "exp": exp,
    "log": log,
    "sqrt": sqrt,
    "rsqrt": _rsqrt,
    "abs": absolute,
    "sigmoid": sigmoid,
    "tanh": tanh,
    "pow": power,
    "expm1": _expm1,
    "log1p": _log1p,
    "fma": _fma,
    "erf": _erf,
    "log_add_exp": _log_add_exp,
}
"""The functions that have laws, by their names in the loop language."""
