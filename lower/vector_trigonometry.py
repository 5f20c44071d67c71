"""Sines and arcs on lanes of floats, inline; special values are those of numpy.

Those of float32 are computed in float64, and so rounded all but correctly.  `sin`, `cos` and
`tan` of float64 are within 3 ulp, its arcs are the C library's, lane by lane.
"""

from collections.abc import Callable, Mapping
from math import factorial, inf, pi, sqrt

from relax_egraph.lower import vector
from relax_egraph.lower.float_format import DOUBLE
from relax_egraph.lower.lane_functions import by_double, polynomial
from relax_egraph.lower.module_text import F32, F64, I64
from relax_egraph.lower.value import Value

# π/2 in three parts: the first two have 33 bits, so that k times them is exact below 2²⁰.
_HALF_PI = (
    float.fromhex("0x1.921fb544p+0"),
    float.fromhex("0x1.0b4611a6p-34"),
    float.fromhex("0x1.3198a2e037073p-69"),
)

_LARGEST = 2.0**20
"""Beyond it, arguments go to the C library."""

_TERMS = {"float": 5, "double": 8}
"""How many terms of a series, from ``r³`` and from ``r²`` on, are enough up to ``π/4``."""


def _turning(name: str, pick: Callable[[Value, Value, Value], Value]) -> Callable[[Value], Value]:
    """The function `name`, which is ``pick(k, sin r, cos r)`` of ``x = k·π/2 + r``, ``|r| ≤ π/4``.

    By Cody and Waite: ``k`` times each part of π/2 is taken off in turn; what the second step
    rounds off is kept.
    """

    def apply(x: Value) -> Value:
        f, terms = x.function, _TERMS[x.type.element]
        wide = f.convert("fpext", x, F64)
        shifted = f.fma(wide, 2 / pi, DOUBLE.magic)
        k = f.binary("-", shifted, DOUBLE.magic, flags="")
        high, middle, low = _HALF_PI
        first = wide - k * high
        second = first - k * middle
        lost = (first - second) - k * middle
        r = second - (k * low - lost)
        square = r * r
        sine = [(-1) ** i / factorial(2 * i + 1) for i in range(1, terms + 1)]
        cosine = [(-1) ** i / factorial(2 * i) for i in range(1, terms + 1)]
        result = pick(
            f.convert("bitcast", shifted, I64),
            f.fma(r * square, polynomial(square, sine), r),
            f.fma(square, polynomial(square, cosine), 1.0),
        )
        result = _beyond(name, wide, result)
        return result if x.type.element == "double" else f.convert("fptrunc", result, F32)

    return apply


def _beyond(name: str, x: Value, result: Value) -> Value:
    """`result`; if any lane of `x` is finite and beyond `_LARGEST`, the C library's `name`."""
    f, lanes = x.function, x.type.lanes
    size = f.intrinsic("fabs", x)
    large = f.compare(">", size, _LARGEST) & f.compare("<", size, inf)
    turns = f.convert("zext", vector.reduce("or", large), I64) * lanes
    with f.loop(0, turns, carry=[result]) as loop:
        if lanes == 1:
            loop.carry(f.call_value(name, x.type, x))
        else:
            one = f.call_value(name, x.type.scalar, vector.lane(x, loop.index))
            loop.carry(vector.with_lane(loop.values[0], loop.index, one))
    return loop.results[0]


def _sine(k: Value, sine: Value, cosine: Value) -> Value:
    f = k.function
    result = f.select(f.compare("==", k & 1, 0), sine, cosine)
    return f.select(f.compare("==", k & 2, 0), result, 0.0 - result)


def _cosine(k: Value, sine: Value, cosine: Value) -> Value:
    return _sine(k + 1, sine, cosine)


def _tangent(k: Value, sine: Value, cosine: Value) -> Value:
    f = k.function
    even = f.compare("==", k & 1, 0)
    return f.select(even, sine, 0.0 - cosine) / f.select(even, cosine, sine)


_TAN_22, _TAN_67 = sqrt(2) - 1, sqrt(2) + 1  # of 22½° and of 67½°


def _arc(y: Value, x: Value) -> Value:
    """The angle of the point ``(x, y)``, in float64 to 1e-10.

    In the first quadrant it is 0°, 45° or 90° and at most 22½°, whose tangent is a quotient.
    """
    f = x.function
    across, up = f.intrinsic("fabs", x), f.intrinsic("fabs", y)
    steep = f.compare(">", up, across * _TAN_67)
    slanted = f.compare(">", up, across * _TAN_22)
    numerator = f.select(steep, 0.0 - across, f.select(slanted, up - across, up))
    denominator = f.select(steep, up, f.select(slanted, up + across, across))
    start = f.select(steep, pi / 2, f.select(slanted, pi / 4, f.const(x.type, 0)))
    diagonal = f.compare("==", up, across)  # among them two zeros, and two infinities
    tangent = f.select(diagonal, 0.0, numerator / denominator)
    start = f.select(diagonal & f.compare(">", up, 0.0), pi / 4, start)
    square = tangent * tangent
    series = polynomial(square, [(-1) ** i / (2 * i + 1) for i in range(12)])
    angle = f.fma(tangent, series, start)
    left = f.compare("<", f.convert("bitcast", x, I64), 0)
    return f.intrinsic("copysign", f.select(left, pi - angle, angle), y)


def _atan(x: Value) -> Value:
    return _arc(x, x.function.const(x.type, 1))


def _asin(x: Value) -> Value:
    return _arc(x, _leg(x))


def _acos(x: Value) -> Value:
    return _arc(_leg(x), x)


def _leg(x: Value) -> Value:
    """``√(1 - x²)``."""
    return x.function.intrinsic("sqrt", (1.0 - x) * (x + 1.0))


FUNCTIONS: Mapping[str, Callable[..., Value]] = {
    "sin": _turning("sin", _sine),
    "cos": _turning("cos", _cosine),
    "tan": _turning("tan", _tangent),
    "asin": by_double("asin", _asin),
    "acos": by_double("acos", _acos),
    "atan": by_double("atan", _atan),
    "atan2": by_double("atan2", _arc),
}
