"""Elementary functions on lanes of floats, inline.

They work on a scalar as on any number of lanes, and give what numpy gives for NaN, infinities
and zeros.  Units in the last place (ulp) are the largest errors measured over the whole range,
subnormal results included.  For float64, `tanh`, `erf` and `pow` call the C library lane by
lane; everything else is polynomials.
"""

from collections.abc import Sequence
from math import inf, nan

from relax_egraph.lower.float_format import FloatFormat, format_of
from relax_egraph.lower.float_scale import scaled, split, whole_number
from relax_egraph.lower.lane_functions import clamped, per_lane, polynomial
from relax_egraph.lower.module_text import F32, F64, I64
from relax_egraph.lower.value import Value

# Fitted for the least relative error, up to where the function rounds to 1.
_TANH_NUMERATOR = (1.0, 0.13380375504, 3.4948149696e-3, 2.0596326067e-5, 1.3336895144e-8)
_TANH_DENOMINATOR = (1.0, 0.46713691950, 2.5874042884e-2, 3.2843693043e-4, 7.7693073308e-7)
_ERF_NUMERATOR = (
    *(1.1283791065, 0.18966540694, 5.2667867392e-2),
    *(3.7382773589e-3, 2.8505924274e-4, 2.0664649583e-6),
)
_ERF_DENOMINATOR = (
    *(1.0, 0.50141936541, 0.11381834745),
    *(1.4914141037e-2, 1.1573568918e-3, 3.8269783545e-5),
)

_LOG2_E = 1.4426950408889634


def exp(x: Value) -> Value:
    """``eˣ``; 1 ulp, 1.2 without FMA.  ``x = k·ln 2 + r``:  the series of ``eʳ``, times ``2ᵏ``."""
    form = format_of(x.type)
    r, shifted = _reduced(clamped(x, *form.exp_range), form)
    return scaled(polynomial(r, (1.0, 1.0, *form.exp_series)), shifted)


def expm1(x: Value) -> Value:
    """``eˣ - 1``; 2 ulp.  With ``x = k·ln 2 + r`` it is ``2ᵏ·(eʳ - 1) + (2ᵏ - 1)``.

    Half of that is computed: ``2ᵏ`` may be too large where the result is not.
    """
    f, form = x.function, format_of(x.type)
    r, shifted = _reduced(clamped(x, -40.0, form.exp_range[1]), form)
    half = (whole_number(shifted, form) + (form.bias - 1)) << form.fraction_bits
    scale = f.convert("bitcast", half, x.type.scalar)
    less_one = r * polynomial(r, (1.0, *form.exp_series))
    return f.fma(less_one, scale, scale - 0.5) * 2.0


def _reduced(x: Value, form: FloatFormat) -> tuple[Value, Value]:
    """``r`` and ``k + magic`` of ``x = k·ln 2 + r`` with the least ``r``, ``k`` an integer."""
    f = x.function
    shifted = f.fma(x, _LOG2_E, form.magic)
    k = f.binary("-", shifted, form.magic, flags="")
    return f.fma(k, -form.ln2_low, f.fma(k, -form.ln2_high, x)), shifted


def log(x: Value) -> Value:
    """The natural logarithm; 1 ulp.  ``x = 2ᵉ(1 + m)`` with ``√½ ≤ 1 + m < √2``."""
    f, form = x.function, format_of(x.type)
    mantissa, e = split(x)
    m = mantissa - 1.0
    # log(1 + m) = m - (m²/2 - s·(m²/2 + R)) with s = m / (2 + m), R = Σ 2/(2i+1)·s²ⁱ
    s = m / (m + 2.0)
    square, half = s * s, m * m * 0.5
    rest = square * polynomial(square, [2 / (2 * i + 1) for i in range(1, form.log_terms + 1)])
    small = f.fma(s, half + rest, e * form.ln2_low)
    result = f.fma(e, form.ln2_high, m - (half - small))
    result = f.select(f.compare("<", x, inf), result, x)
    pole = f.select(f.compare("==", x, 0.0), -inf, f.const(x.type, nan))
    return f.select(f.compare("<=", x, 0.0), pole, result)


def log1p(x: Value) -> Value:
    """``ln(1 + x)``; 3 ulp.  It is ``ln u · x/(u - 1)``, whatever ``u = 1 + x`` loses of `x`."""
    f = x.function
    u = f.binary("+", x, 1.0, flags="")
    lost = x / f.binary("-", u, 1.0, flags="")
    same = f.compare("==", u, 1.0) | f.compare("==", u, inf)
    return f.select(same, x, log(u) * lost)


def sigmoid(x: Value) -> Value:
    """``1 / (1 + e⁻ˣ)``; 3 ulp, and 0 where ``e⁻ˣ`` overflows."""
    return 1.0 / (exp(0.0 - x) + 1.0)


def rsqrt(x: Value) -> Value:
    """``1 / √x``; 1.5 ulp."""
    return 1.0 / x.function.intrinsic("sqrt", x)


def tanh(x: Value) -> Value:
    """The hyperbolic tangent; 6 ulp for float32 (3e-7 absolute), the C library's for float64."""
    if x.type.element == "double":
        return per_lane("tanh", x)
    return _odd_quotient(
        x,
        above=10.0,
        numerator=_TANH_NUMERATOR,
        denominator=_TANH_DENOMINATOR,
    )


def erf(x: Value) -> Value:
    """The error function; 6 ulp for float32 (4e-7 absolute), the C library's for float64."""
    if x.type.element == "double":
        return per_lane("erf", x)
    return _odd_quotient(
        x,
        above=4.2,
        numerator=_ERF_NUMERATOR,
        denominator=_ERF_DENOMINATOR,
    )


def _odd_quotient(
    x: Value, *, above: float, numerator: Sequence[float], denominator: Sequence[float]
) -> Value:
    """``x·P(x²)/Q(x²)`` within ±1; from ±`above` on the quotient is beyond 1, where it is cut off.

    There the polynomials stay as they are, and `x` alone grows.
    """
    f, limit = x.function, above * above
    square = x * x
    square = f.select(f.compare(">", square, limit), limit, square)
    quotient = x * polynomial(square, numerator) / polynomial(square, denominator)
    return clamped(quotient, -1.0, 1.0)


def power(x: Value, y: Value) -> Value:
    """``xʸ``; 1 ulp for float32, by way of float64; the C library's for float64."""
    f = x.function
    if x.type.element == "double":
        return per_lane("pow", x, y)
    a, b = f.convert("fpext", x, F64), f.convert("fpext", y, F64)
    size = f.intrinsic("fabs", a)
    result = exp(b * log(size))
    whole = f.compare("==", f.intrinsic("floor", b), b)
    half = b * 0.5
    odd = whole & f.compare("!=", f.intrinsic("floor", half), half)
    negative = f.compare("<", f.convert("bitcast", a, I64), 0)
    result = f.select(negative & odd, 0.0 - result, result)
    undefined = f.compare("<", a, 0.0) & f.compare("<", size, inf) & (whole ^ 1)
    result = f.select(undefined, nan, result)
    # 1 to any power is 1, a NaN's too; so is -1 to an infinite one, and anything to the 0th
    endless = f.compare("==", f.intrinsic("fabs", b), inf)
    one = f.compare("==", a, 1.0) | (f.compare("==", size, 1.0) & endless)
    result = f.select(one | f.compare("==", b, 0.0), 1.0, result)
    return f.convert("fptrunc", result, F32)


def floor_divide(a: Value, b: Value) -> Value:
    """``⌊a / b⌋`` of floats, by way of the remainder, as numpy computes it."""
    f = a.function
    rest = f.binary("frem", a, b, flags="")
    signs_differ = f.compare("<", rest, 0.0) ^ f.compare("<", b, 0.0)
    wrong = signs_differ & f.compare("!=", rest, 0.0)
    quotient = (a - rest) / b
    quotient = f.select(wrong, quotient - 1.0, quotient)
    floor = f.intrinsic("floor", quotient)
    floor = f.select(f.compare(">", quotient - floor, 0.5), floor + 1.0, floor)
    return f.select(f.compare("==", b, 0.0), a / b, floor)


def floor_remainder(a: Value, b: Value) -> Value:
    """``a mod b`` of floats, with the sign of `b`."""
    f = a.function
    rest = f.binary("frem", a, b, flags="")
    signs_differ = f.compare("<", rest, 0.0) ^ f.compare("<", b, 0.0)
    wrong = signs_differ & f.compare("!=", rest, 0.0)
    return f.select(wrong, rest + b, rest)
