"""Elementary functions on lanes of floats, inline.

They accept scalars and any number of lanes, and agree with numpy for NaN, infinities and zeros.
Errors in units in the last place (ulp) are maxima measured over the whole range, including
subnormal results.  For float64, `pow` calls the C library lane by lane; all others are polynomials.
"""

from collections.abc import Sequence
from math import inf, nan

from relax_egraph.lower.emit.float_format import FloatFormat, format_of
from relax_egraph.lower.emit.float_scale import power_of_two, scaled, split, whole_number
from relax_egraph.lower.emit.instructions import Value
from relax_egraph.lower.emit.lane_functions import clamped, per_lane, polynomial
from relax_egraph.lower.emit.module_text import F32, F64, I32

# Minimax fits of the relative error, up to where the function rounds to 1.
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

# For powers of float32, fitted: log₂((1 + s)/(1 - s))/s in s², and 2ˣ on ±½.
_LOG2 = (
    *(2.885390081790167, 0.9617966732479805, 0.577083601862047, 0.4116717488335824),
    0.340747459693286,
)
_EXP2 = (
    *(0.9999999999189493, 0.6931472067087753, 0.24022651505648931, 0.05550327215456929),
    *(0.009617994467192383, 0.001340043197884495, 0.00015478032320925342),
)

# For float64: erf(x)/x in x² up to 1, and ln(1 - erf x) beyond, weighted by its share of 1.
_ERF = (
    *(1.1283791670955126, -0.3761263890318375, 0.11283791670954885, -0.026866170645077878),
    *(0.005223977624828436, -0.0008548326981425367, 0.00012055331132935364),
    *(-1.49255957714418e-05, 1.6461008463181336e-06, -1.635039604865991e-07),
    *(1.4660327474108974e-08, -1.1374950764263786e-09, 5.960676872518879e-11),
)
_LOG_ERFC = (
    *(-5.13333598325472e-07, -1.1283739908236854, -0.6366440590624399, -0.10270227890243848),
    *(0.018988021379974872, 0.00041356521521642727, -0.0019189757202656662),
    *(0.0007730675424502245, -0.000136569759852736, -1.9516005992212793e-05),
    *(2.253017851427975e-05, -8.5779481133986e-06, 2.114600153065984e-06),
    *(-3.6952912483995085e-07, 4.592837857352589e-08, -3.889569595504025e-09),
    *(2.0200922698481414e-10, -4.86444572771322e-12),
)
_ERF_IS_ONE = 5.95

_LOG2_E = 1.4426950408889634


def exp(x: Value) -> Value:
    """``eˣ``; 1 ulp, 1.2 without FMA.  ``x = k·ln 2 + r``: the series of ``eʳ``, times ``2ᵏ``."""
    form = format_of(x.type)
    r, shifted = _reduced(clamped(x, *form.exp_range), form)
    return scaled(polynomial(r, (1.0, 1.0, *form.exp_series)), shifted)


def exp_nonpositive(x: Value) -> Value:
    """``eˣ`` for ``x ≤ 0``; the error of float32 is 2 ulp, and 0.7 ulp of `x` times the result."""
    return exp(x) if x.type.element == "double" else power_of_two(x * _LOG2_E)


def expm1(x: Value) -> Value:
    """``eˣ - 1``; 2 ulp.  With ``x = k·ln 2 + r`` it is ``2ᵏ·(eʳ - 1) + (2ᵏ - 1)``.

    Half of it is computed and doubled, since ``2ᵏ`` may overflow before the result does.
    """
    f, form = x.function, format_of(x.type)
    r, shifted = _reduced(clamped(x, -40.0, form.exp_range[1]), form)
    half = (whole_number(shifted, form) + (form.bias - 1)) << form.fraction_bits
    scale = f.convert("bitcast", half, x.type.scalar)
    less_one = r * polynomial(r, (1.0, *form.exp_series))
    return f.fma(less_one, scale, scale - 0.5) * 2.0


def _reduced(x: Value, form: FloatFormat) -> tuple[Value, Value]:
    """``r`` and ``k + scale_magic`` of ``x = k·ln 2 + r`` with ``|r| ≤ ln 2 / 2``."""
    f = x.function
    shifted = f.fma(x, _LOG2_E, form.scale_magic)
    k = f.binary("-", shifted, form.scale_magic, flags="")
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
    """``ln(1 + x)``; 3 ulp.  It is ``ln u · x/(u - 1)`` with ``u = 1 + x`` (Kahan)."""
    f = x.function
    u = f.binary("+", x, 1.0, flags="")
    correction = x / f.binary("-", u, 1.0, flags="")
    same = f.compare("==", u, 1.0) | f.compare("==", u, inf)
    return f.select(same, x, log(u) * correction)


def sigmoid(x: Value) -> Value:
    """``1 / (1 + e⁻ˣ)``; 3 ulp, and 0 where ``e⁻ˣ`` overflows."""
    return 1.0 / (exp(0.0 - x) + 1.0)


def rsqrt(x: Value) -> Value:
    """``1 / √x``; 1.5 ulp."""
    return 1.0 / x.function.intrinsic("sqrt", x)


def tanh(x: Value) -> Value:
    """The hyperbolic tangent; 6 ulp for float32 (3e-7 absolute), 3 ulp for float64.

    For float64 it is ``t/(t + 2)`` with ``t = e²ˣ - 1``.
    """
    if x.type.element == "double":
        f = x.function
        less_one = expm1(clamped(f.intrinsic("fabs", x) * 2.0, 0.0, 40.0))
        return f.intrinsic("copysign", less_one / (less_one + 2.0), x)
    return _odd_quotient(
        x,
        above=10.0,
        numerator=_TANH_NUMERATOR,
        denominator=_TANH_DENOMINATOR,
    )


def erf(x: Value) -> Value:
    """The error function; 6 ulp for float32 (4e-7 absolute), 2 ulp for float64.

    For float64 it is a polynomial up to 1, and beyond it 1 minus the exponential of a polynomial.
    """
    if x.type.element == "double":
        f = x.function
        size = clamped(f.intrinsic("fabs", x), 0.0, _ERF_IS_ONE)
        below = x * polynomial(x * x, _ERF)
        above = f.intrinsic("copysign", 1.0 - exp(polynomial(size, _LOG_ERFC)), x)
        return f.select(f.compare("<=", size, 1.0), below, above)
    return _odd_quotient(
        x,
        above=4.2,
        numerator=_ERF_NUMERATOR,
        denominator=_ERF_DENOMINATOR,
    )


def _odd_quotient(
    x: Value, *, above: float, numerator: Sequence[float], denominator: Sequence[float]
) -> Value:
    """``x·P(x²)/Q(x²)`` clamped to ±1; from ±`above` on the quotient exceeds ±1.

    There the polynomials are evaluated at `above`, and only the factor `x` grows.
    """
    f, limit = x.function, above * above
    square = x * x
    square = f.select(f.compare(">", square, limit), limit, square)
    quotient = x * polynomial(square, numerator) / polynomial(square, denominator)
    return clamped(quotient, -1.0, 1.0)


def power(x: Value, y: Value) -> Value:
    """``xʸ``; 0.6 ulp for float32, computed in float64; the C library's for float64."""
    f = x.function
    if x.type.element == "double":
        return per_lane("pow", x, y)
    size = f.intrinsic("fabs", x)
    exponent = f.convert("fpext", y, F64) * _log2(f.convert("fpext", size, F64))
    result = f.convert("fptrunc", _exp2(clamped(exponent, -160.0, 140.0)), F32)
    whole = f.compare("==", f.intrinsic("floor", y), y)
    half = y * 0.5
    odd = whole & f.compare("!=", f.intrinsic("floor", half), half)
    negative = f.compare("<", f.convert("bitcast", x, I32), 0)
    result = f.select(negative & odd, 0.0 - result, result)
    undefined = f.compare("<", x, 0.0) & f.compare("<", size, inf) & (whole ^ 1)
    result = f.select(undefined, nan, result)
    # 1 to any power (also NaN) is 1; so is -1 to an infinite power, and anything to the power 0
    infinite = f.compare("==", f.intrinsic("fabs", y), inf)
    one = f.compare("==", x, 1.0) | (f.compare("==", size, 1.0) & infinite)
    return f.select(one | f.compare("==", y, 0.0), 1.0, result)


def _log2(x: Value) -> Value:
    """The base-2 logarithm of a nonnegative float64, to 36 bits."""
    f = x.function
    mantissa, e = split(x)
    s = (mantissa - 1.0) / (mantissa + 1.0)
    result = f.fma(s, polynomial(s * s, _LOG2), e)
    result = f.select(f.compare("<", x, inf), result, x)
    return f.select(f.compare("==", x, 0.0), -inf, result)


def _exp2(x: Value) -> Value:
    """``2ˣ`` for a float64, to 28 bits; the result is a normal number."""
    f, form = x.function, format_of(x.type)
    shifted = f.binary("+", x, form.scale_magic, flags="")
    rest = x - f.binary("-", shifted, form.scale_magic, flags="")
    return scaled(polynomial(rest, _EXP2), shifted)


def floor_divide(a: Value, b: Value) -> Value:
    """``⌊a / b⌋`` of floats, from the remainder, as in numpy."""
    f = a.function
    rest, wrong = _remainder(a, b)
    quotient = (a - rest) / b
    quotient = f.select(wrong, quotient - 1.0, quotient)
    floor = f.intrinsic("floor", quotient)
    floor = f.select(f.compare(">", quotient - floor, 0.5), floor + 1.0, floor)
    return f.select(f.compare("==", b, 0.0), a / b, floor)


def floor_remainder(a: Value, b: Value) -> Value:
    """``a mod b`` of floats, with the sign of `b`."""
    rest, wrong = _remainder(a, b)
    return a.function.select(wrong, rest + b, rest)


def _remainder(a: Value, b: Value) -> tuple[Value, Value]:
    """The remainder with the sign of `a`, and whether that differs from the sign of `b`."""
    f = a.function
    rest = f.binary("frem", a, b, flags="")
    signs_differ = f.compare("<", rest, 0.0) ^ f.compare("<", b, 0.0)
    return rest, signs_differ & f.compare("!=", rest, 0.0)
