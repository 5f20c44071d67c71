"""Hyperbolic functions and their inverses on lanes of floats; special values are those of numpy.

Those of float32 are formulas in float64, inline, with the beginning of the series where the
formula cancels; those of float64 are the C library's, lane by lane.
"""

from collections.abc import Callable, Mapping

from relax_egraph.lower.lane_functions import by_double
from relax_egraph.lower.value import Value
from relax_egraph.lower.vector_math import exp, log

_SMALL = 1e-5
"""Below it ``x`` is all there is of a series ``x ± x³/6`` that float32 shows."""


def _near_zero(x: Value, result: Value) -> Value:
    f = x.function
    return f.select(f.compare("<", f.intrinsic("fabs", x), _SMALL), x, result)


def _sinh(x: Value) -> Value:
    power = exp(x)
    return _near_zero(x, (power - 1.0 / power) * 0.5)


def _cosh(x: Value) -> Value:
    power = exp(x)
    return (power + 1.0 / power) * 0.5


def _asinh(x: Value) -> Value:
    f = x.function
    size = f.intrinsic("fabs", x)
    result = log(size + f.intrinsic("sqrt", f.fma(size, size, 1.0)))
    return _near_zero(x, f.intrinsic("copysign", result, x))


def _acosh(x: Value) -> Value:
    """One root for each factor: their product is positive below -1, too."""
    f = x.function
    return log(x + f.intrinsic("sqrt", x - 1.0) * f.intrinsic("sqrt", x + 1.0))


def _atanh(x: Value) -> Value:
    return _near_zero(x, log((x + 1.0) / (1.0 - x)) * 0.5)


FUNCTIONS: Mapping[str, Callable[..., Value]] = {
    "sinh": by_double("sinh", _sinh),
    "cosh": by_double("cosh", _cosh),
    "asinh": by_double("asinh", _asinh),
    "acosh": by_double("acosh", _acosh),
    "atanh": by_double("atanh", _atanh),
}
