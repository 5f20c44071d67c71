"""Trigonometric functions and their inverses on lanes of floats, with numpy's special values.

Those of float32 are computed in float64, so almost always correctly rounded.  Those of float64 are
within 3 ulp, except `atan2`, which is the C library's, lane by lane.
"""

from collections.abc import Callable, Mapping, Sequence
from math import factorial, pi, sqrt

from relax_egraph.lower.emit import vector
from relax_egraph.lower.emit.float_format import DOUBLE
from relax_egraph.lower.emit.instructions import Value
from relax_egraph.lower.emit.lane_functions import by_double, polynomial
from relax_egraph.lower.emit.module_text import F32, F64, I64

# π/2 in three parts: the first two have 33 bits, so their products with k < 2²⁰ are exact.
_HALF_PI = (
    float.fromhex("0x1.921fb544p+0"),
    float.fromhex("0x1.0b4611a6p-34"),
    float.fromhex("0x1.3198a2e037073p-69"),
)

_LARGEST = 2.0**20
"""Beyond it, the C library computes the function."""

_TERMS = 8
"""The terms of the series, from ``r³`` and from ``r²`` on, that suffice up to ``π/4``."""

# For float32, minimax fits of the relative error: from r³ on, and from r⁴ on.
_SINE = (-0.16666666633876265, 8.333328501709304e-3, -1.983905604771121e-4, 2.715712366382055e-6)
_COSINE = (0.04166666660928901, -1.3888882605612414e-3, 2.479922274343184e-5, -2.71861691196597e-7)

Turn = tuple[Value, Value, Value]
"""For ``x = k·π/2 + r``: ``k`` in the low bits, the sine of ``r``, and its cosine."""


def _periodic(name: str, pick: Callable[[Value, Value, Value], Value]) -> Callable[[Value], Value]:
    """The function `name`, which is ``pick(k, sin r, cos r)`` of ``x = k·π/2 + r``, ``|r| ≤ π/4``.

    Beyond `_LARGEST` it is the C library's.
    """

    def apply(x: Value) -> Value:
        f = x.function
        if x.type.element == "double":
            return _beyond(name, x, pick(*_precise(x)))
        result = f.convert("fptrunc", pick(*_short(f.convert("fpext", x, F64))), F32)
        return _beyond(name, x, result)

    return apply


def _precise(x: Value) -> Turn:
    """Reduction by Cody and Waite (1980): ``k`` times each part of π/2 is subtracted in turn.

    The rounding error of the second step is carried along.
    """
    f = x.function
    shifted, k = _quarters(x)
    high, middle, low = _HALF_PI
    reduced = x - k * high
    twice_reduced = reduced - k * middle
    error = (reduced - twice_reduced) - k * middle
    r = twice_reduced - (k * low - error)
    square = r * r
    sine = [(-1) ** i / factorial(2 * i + 1) for i in range(1, _TERMS + 1)]
    cosine = [(-1) ** i / factorial(2 * i) for i in range(1, _TERMS + 1)]
    return (
        f.convert("bitcast", shifted, I64),
        f.fma(r * square, polynomial(square, sine), r),
        f.fma(square, polynomial(square, cosine), 1.0),
    )


def _short(x: Value) -> Turn:
    """The same to 33 bits or more, for an `x` with at most 24 bits."""
    f = x.function
    shifted, k = _quarters(x)
    reduced = f.fma(k, -_HALF_PI[0], x)  # exact
    r = f.fma(k, -(_HALF_PI[1] + _HALF_PI[2]), reduced)
    square = r * r
    return (
        f.convert("bitcast", shifted, I64),
        f.fma(r * square, polynomial(square, _SINE), r),
        f.fma(square, polynomial(square, (-0.5, *_COSINE)), 1.0),
    )


def _quarters(x: Value) -> tuple[Value, Value]:
    """``k + magic`` and ``k`` of ``x = k·π/2 + r`` with minimal ``|r|`` and integer ``k``."""
    f = x.function
    shifted = f.fma(x, 2 / pi, DOUBLE.magic)
    return shifted, f.binary("-", shifted, DOUBLE.magic, flags="")


def _beyond(name: str, x: Value, result: Value) -> Value:
    """`result`, or the C library's `name` for all lanes if one of `x` is beyond `_LARGEST`."""
    f, lanes = x.function, x.type.lanes
    large = f.compare(">", f.intrinsic("fabs", x), _LARGEST)
    turns = f.convert("zext", vector.reduce("or", large), I64) * lanes
    with f.loop(0, turns, carry=[result]) as loop:
        one = x if lanes == 1 else vector.lane(x, loop.index)
        wide = f.convert("fpext", one, F64)
        called = f.convert("fptrunc", f.call_value(name, F64, wide), x.type.scalar)
        if lanes == 1:
            loop.carry(called)
        else:
            loop.carry(vector.with_lane(loop.values[0], loop.index, called))
    return loop.results[0]


def _sine(k: Value, sine: Value, cosine: Value) -> Value:
    f = k.function
    result = f.select(f.compare("==", k & 1, 0), sine, cosine)
    signed = f.convert("bitcast", result, I64) ^ ((k & 2) << 62)
    return f.convert("bitcast", signed, F64)


def _cosine(k: Value, sine: Value, cosine: Value) -> Value:
    return _sine(k + 1, sine, cosine)


def _tangent(k: Value, sine: Value, cosine: Value) -> Value:
    f = k.function
    even = f.compare("==", k & 1, 0)
    return f.select(even, sine, 0.0 - cosine) / f.select(even, cosine, sine)


_TAN_22, _TAN_67 = sqrt(2) - 1, sqrt(2) + 1  # of 22½° and of 67½°

# atan(t)/t in t², up to 22½°, for float32 and for float64.
_ARC_SHORT = (
    *(0.999999999979829, -0.33333332157236834, 0.19999887891284776, -0.14281688716718338),
    *(0.1104160909372151, -0.08461979365956827, 0.047185646299100374),
)
_ARC = (
    *(1.0, -0.3333333333333313, 0.19999999999943735, -0.142857142795079, 0.11111110756902211),
    *(-0.09090897134245429, 0.07692050833352676, -0.06663011615582477, 0.05847295849546989),
    *(-0.05036912919034849, 0.03800962177424553, -0.017852344988286212),
)


def _arc(y: Value, x: Value, series: Sequence[float]) -> Value:
    """The angle of the point ``(x, y)`` in float64, with `x` or `y` at most 1.

    In the first quadrant it is 0°, 45° or 90° plus an angle of at most 22½°, whose tangent is a
    quotient.
    """
    f = x.function
    across, up = f.intrinsic("fabs", x), f.intrinsic("fabs", y)
    steep = f.compare(">", up, across * _TAN_67)
    slanted = f.compare(">", up, across * _TAN_22)
    numerator = f.select(steep, 0.0 - across, f.select(slanted, up - across, up))
    denominator = f.select(steep, up, f.select(slanted, up + across, across))
    start = f.select(steep, pi / 2, f.select(slanted, pi / 4, f.const(x.type, 0)))
    diagonal = f.compare("==", up, across)  # including two zeros and two infinities
    tangent = f.select(diagonal, 0.0, numerator / denominator)
    start = f.select(diagonal & f.compare(">", up, 0.0), pi / 4, start)
    angle = f.fma(tangent, polynomial(tangent * tangent, series), start)
    left = f.compare("<", f.convert("bitcast", x, I64), 0)
    return f.intrinsic("copysign", f.select(left, pi - angle, angle), y)


def _short_arc(y: Value, x: Value) -> Value:
    return _arc(y, x, _ARC_SHORT)


def _leg(x: Value) -> Value:
    """``√(1 - x²)``."""
    return x.function.intrinsic("sqrt", (1.0 - x) * (x + 1.0))


def _of_point(point: Callable[[Value], tuple[Value, Value]]) -> Callable[[Value], Value]:
    """The angle of the point ``(y, x)`` that `point` computes from the operand."""

    def apply(x: Value) -> Value:
        f = x.function
        if x.type.element == "double":
            return _arc(*point(x), _ARC)
        return f.convert("fptrunc", _arc(*point(f.convert("fpext", x, F64)), _ARC_SHORT), F32)

    return apply


FUNCTIONS: Mapping[str, Callable[..., Value]] = {
    "sin": _periodic("sin", _sine),
    "cos": _periodic("cos", _cosine),
    "tan": _periodic("tan", _tangent),
    "asin": _of_point(lambda x: (x, _leg(x))),
    "acos": _of_point(lambda x: (_leg(x), x)),
    "atan": _of_point(lambda x: (x, x.function.const(x.type, 1))),
    "atan2": by_double("atan2", _short_arc),
}
