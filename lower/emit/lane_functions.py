"""Building blocks of float functions on lanes: polynomials, clamping, calls per lane."""

from collections.abc import Callable, Sequence

from relax_egraph.lower.emit import vector
from relax_egraph.lower.emit.instructions import Operand, Value
from relax_egraph.lower.emit.module_text import F32, F64


def clamped(x: Value, low: float, high: float) -> Value:
    """`x` clamped to [`low`, `high`]; NaN stays NaN."""
    f = x.function
    if f.module.target.has_extremes:
        return f.minimum(f.maximum(x, low), high)
    x = f.select(f.compare("<", x, low), low, x)
    return f.select(f.compare(">", x, high), high, x)


_LONG = 7
"""The length of a chain of dependent sums above which extra products are faster."""

_EXACT = 2
"""The number of leading terms that are added last, since they must not be rounded early."""


def polynomial(x: Value, coefficients: Sequence[float]) -> Value:
    """``Σ coefficients[i]·xⁱ``, for two coefficients or more.

    By Horner's rule, which takes the fewest operations; the later terms of a long polynomial are
    first combined `in_pairs`.
    """
    f = x.function
    count = _EXACT if len(coefficients) > _LONG else 0
    result = in_pairs(x, coefficients[count:], _LONG)
    for term in reversed(coefficients[:count]):
        result = f.fma(result, x, term)
    return result


def in_pairs(x: Value, coefficients: Sequence[float], longest: int) -> Value:
    """``Σ coefficients[i]·xⁱ``, by a chain of at most `longest` dependent sums (Estrin, 1960).

    The first terms are rounded before all others are added.
    """
    f, power, terms = x.function, x, list[Operand](coefficients)
    while len(terms) > longest:
        pairs = [f.fma(b, power, a) for a, b in zip(terms[::2], terms[1::2], strict=False)]
        terms = [*pairs, *terms[2 * len(pairs) :]]
        power = power * power
    result = terms[-1]
    for term in reversed(terms[:-1]):
        result = f.fma(result, power, term)
    return f.match(result, x)[0]


def per_lane(name: str, *args: Value) -> Value:
    """The C library's function `name`, called for each lane."""
    f, type = args[0].function, args[0].type
    if type.lanes == 1:
        return f.call_value(name, type, *args)
    result = f.const(type, 0)
    for i in range(type.lanes):
        scalar = f.call_value(name, type.scalar, *(vector.lane(a, i) for a in args))
        result = vector.with_lane(result, i, scalar)
    return result


def by_double(name: str, wide: Callable[..., Value]) -> Callable[..., Value]:
    """The function `wide` for float32, computed in float64 and rounded.

    For float64 it is the C library's `name`, so `wide` need not be precise in the last bits of
    float64.
    """

    def apply(*args: Value) -> Value:
        f = args[0].function
        if args[0].type.element == "double":
            return per_lane(name, *args)
        return f.convert("fptrunc", wide(*(f.convert("fpext", a, F64) for a in args)), F32)

    return apply
