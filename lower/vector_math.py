"""Elementary functions on lanes of floats, inline.

They work on a scalar as on any number of lanes, and give what numpy gives for NaN, infinities
and zeros.  Units in the last place (ulp) are the largest errors measured over the whole range,
subnormal results included.  For float64, `tanh`, `erf` and `pow` call the C library lane by
lane; everything else is polynomials.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import factorial, inf, nan

from relax_egraph.lower import vector
from relax_egraph.lower.module_text import F32, F64, I32, I64, Type
from relax_egraph.lower.value import Operand, Value


@dataclass(frozen=True, slots=True)
class _Format:
    """A float format: its bits, and how far the series must go for its precision."""

    integer: Type
    fraction_bits: int
    bias: int
    root_half: int  # the bits of √½
    smallest_normal: float
    ln2_high: float  # ln 2 = high + low; high has zeros at its end, so that k · high is exact
    ln2_low: float
    exp_range: tuple[float, float]  # below it exp is 0, above it inf
    exp_terms: int
    log_terms: int

    @property
    def magic(self) -> float:
        """A sum with it is rounded to an integer, which then stands in its low bits."""
        return 1.5 * 2.0**self.fraction_bits

    @property
    def magic_bits(self) -> int:
        """The bits of `magic`."""
        exponent = self.bias + self.fraction_bits
        return (exponent << self.fraction_bits) | 1 << (self.fraction_bits - 1)


_SINGLE = _Format(
    integer=I32,
    fraction_bits=23,
    bias=127,
    root_half=0x3F3504F3,
    smallest_normal=2.0**-126,
    ln2_high=0.693145751953125,
    ln2_low=1.42860682030941723212e-6,
    exp_range=(-104.0, 89.0),
    exp_terms=7,
    log_terms=4,
)
_DOUBLE = _Format(
    integer=I64,
    fraction_bits=52,
    bias=1023,
    root_half=0x3FE6A09E667F3BCD,
    smallest_normal=2.0**-1022,
    ln2_high=0.6931471803691238,
    ln2_low=1.9082149292705877e-10,
    exp_range=(-746.0, 710.0),
    exp_terms=13,
    log_terms=9,
)


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


def _format(type: Type) -> _Format:
    return _SINGLE if type.element == "float" else _DOUBLE


def exp(x: Value) -> Value:
    """``eˣ``; 1 ulp, 1.2 without FMA.  ``x = k·ln 2 + r``:  the series of ``eʳ``, times ``2ᵏ``."""
    f, form = x.function, _format(x.type)
    x = _clamped(x, *form.exp_range)
    shifted = f.fma(x, _LOG2_E, form.magic)
    k = f.binary("-", shifted, form.magic, flags="")
    r = f.fma(k, -form.ln2_low, f.fma(k, -form.ln2_high, x))
    series = _polynomial(r, [1 / factorial(i) for i in range(form.exp_terms + 1)])
    power = f.convert("bitcast", shifted, form.integer) - form.magic_bits
    return _scaled(series, power, form)


def _scaled(value: Value, power: Value, form: _Format) -> Value:
    """``value · 2^power``, in two steps: each factor is a normal number, the product may not be."""
    f, type = value.function, value.type
    if f.module.target.has_masks and type.element == "float":
        name = f"llvm.ldexp.{type.suffix}.{power.type.suffix}"
        return f.call_value(name, type, value, power)
    half = power >> 1
    for part in (half, power - half):
        factor = (part + form.bias) << form.fraction_bits
        value = value * f.convert("bitcast", factor, value.type.scalar)
    return value


def log(x: Value) -> Value:
    """The natural logarithm; 1 ulp.  ``x = 2ᵉ(1 + m)`` with ``√½ ≤ 1 + m < √2``."""
    f, form = x.function, _format(x.type)
    tiny = f.compare("<", x, form.smallest_normal)
    lift = form.fraction_bits + 1
    normal = f.select(tiny, x * 2.0**lift, x)
    bits = f.convert("bitcast", normal, form.integer)
    exponent = (bits - form.root_half) >> form.fraction_bits
    mantissa = f.convert("bitcast", bits - (exponent << form.fraction_bits), x.type.scalar)
    e = f.convert("sitofp", exponent, x.type.scalar) - f.select(
        tiny, float(lift), f.const(x.type, 0)
    )
    m = mantissa - 1.0
    # log(1 + m) = m - (m²/2 - s·(m²/2 + R)) with s = m / (2 + m), R = Σ 2/(2i+1)·s²ⁱ
    s = m / (m + 2.0)
    square, half = s * s, m * m * 0.5
    rest = square * _polynomial(square, [2 / (2 * i + 1) for i in range(1, form.log_terms + 1)])
    small = f.fma(s, half + rest, e * form.ln2_low)
    result = f.fma(e, form.ln2_high, m - (half - small))
    result = f.select(f.compare("<", x, inf), result, x)
    pole = f.select(f.compare("==", x, 0.0), -inf, f.const(x.type, nan))
    return f.select(f.compare("<=", x, 0.0), pole, result)


def sigmoid(x: Value) -> Value:
    """``1 / (1 + e⁻ˣ)``; 3 ulp, and 0 where ``e⁻ˣ`` overflows."""
    return 1.0 / (exp(0.0 - x) + 1.0)


def rsqrt(x: Value) -> Value:
    """``1 / √x``; 1.5 ulp."""
    return 1.0 / x.function.intrinsic("sqrt", x)


def tanh(x: Value) -> Value:
    """The hyperbolic tangent; 6 ulp for float32 (3e-7 absolute), the C library's for float64."""
    if x.type.element == "double":
        return _per_lane("tanh", x)
    return _odd_quotient(
        x,
        above=10.0,
        numerator=_TANH_NUMERATOR,
        denominator=_TANH_DENOMINATOR,
    )


def erf(x: Value) -> Value:
    """The error function; 6 ulp for float32 (4e-7 absolute), the C library's for float64."""
    if x.type.element == "double":
        return _per_lane("erf", x)
    return _odd_quotient(
        x,
        above=4.2,
        numerator=_ERF_NUMERATOR,
        denominator=_ERF_DENOMINATOR,
    )


def _odd_quotient(
    x: Value, *, above: float, numerator: Sequence[float], denominator: Sequence[float]
) -> Value:
    """``x·P(x²)/Q(x²)`` within ±1; at ±`above` the quotient is beyond 1, where it is cut off."""
    x = _clamped(x, -above, above)
    square = x * x
    quotient = x * _polynomial(square, numerator) / _polynomial(square, denominator)
    return _clamped(quotient, -1.0, 1.0)


def power(x: Value, y: Value) -> Value:
    """``xʸ``; 1 ulp for float32, by way of float64; the C library's for float64."""
    f = x.function
    if x.type.element == "double":
        return _per_lane("pow", x, y)
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


def _clamped(x: Value, low: float, high: float) -> Value:
    """`x` within bounds; a NaN stays one, as it compares false."""
    f = x.function
    x = f.select(f.compare("<", x, low), low, x)
    return f.select(f.compare(">", x, high), high, x)


def _polynomial(x: Value, coefficients: Sequence[float]) -> Value:
    """``Σ coefficients[i]·xⁱ``, of at least two coefficients, by Horner's rule."""
    f = x.function
    result: Operand = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        result = f.fma(result, x, coefficient)
    return f.match(result, x)[0]


def _per_lane(name: str, *args: Value) -> Value:
    """The C library's function `name`, called once for each lane."""
    f, type = args[0].function, args[0].type
    if type.lanes == 1:
        return f.call_value(name, type, *args)
    result = f.const(type, 0)
    for i in range(type.lanes):
        one = f.call_value(name, type.scalar, *(vector.lane(a, i) for a in args))
        result = vector.with_lane(result, i, one)
    return result


def _square_root(x: Value) -> Value:
    return x.function.intrinsic("sqrt", x)


def _fabs(x: Value) -> Value:
    return x.function.intrinsic("fabs", x)


def _fma(a: Value, b: Value, c: Value) -> Value:
    return a.function.fma(a, b, c)


FUNCTIONS: Mapping[str, Callable[..., Value]] = {
    "exp": exp,
    "log": log,
    "sqrt": _square_root,
    "rsqrt": rsqrt,
    "tanh": tanh,
    "erf": erf,
    "sigmoid": sigmoid,
    "abs": _fabs,
    "pow": power,
    "fma": _fma,
}
"""The functions of `tir.expr.INTRINSICS` on floats."""
