"""Hyperbolic functions and their inverses on lanes of floats, with numpy's special values.

Those of float32 are inline formulas in float64, with the start of the series where the formula
cancels.  `sinh` and `cosh` of float64 are within 3 ulp, the inverses are the C library's, lane by
lane.
"""

from collections.abc import Callable, Mapping

from relax_egraph.lower.emit.instructions import Value
from relax_egraph.lower.emit.lane_functions import by_double, clamped
from relax_egraph.lower.emit.module_text import F32, F64
from relax_egraph.lower.emit.vector_math import exp, expm1, log

Function = Callable[[Value], Value]

_SMALL = 1e-5
"""Below it, the series ``x ± x³/6`` rounds to ``x`` in float32."""


def _near_zero(x: Value, result: Value) -> Value:
    f = x.function
    return f.select(f.compare("<", f.intrinsic("fabs", x), _SMALL), x, result)


_LONG = 20.0
"""Beyond it, ``e⁻ˣ`` is negligible beside ``eˣ`` in float64."""


def _sinh(x: Value) -> Value:
    power = exp(x)
    return _near_zero(x, (power - 1.0 / power) * 0.5)


def _precise_sinh(x: Value) -> Value:
    """``(t + t/(t + 1))/2`` with ``t = e^|x| - 1``, without cancellation."""
    f = x.function
    size = f.intrinsic("fabs", x)
    less_one = expm1(clamped(size, 0.0, _LONG))
    near = (less_one + less_one / (less_one + 1.0)) * 0.5
    return f.intrinsic("copysign", f.select(f.compare(">", size, _LONG), _far(size), near), x)


def _cosh(x: Value) -> Value:
    power = exp(x)
    return (power + 1.0 / power) * 0.5


def _precise_cosh(x: Value) -> Value:
    f = x.function
    size = f.intrinsic("fabs", x)
    near = _cosh(clamped(size, 0.0, _LONG))
    return f.select(f.compare(">", size, _LONG), _far(size), near)


def _far(size: Value) -> Value:
    """``e^size / 2`` as a product of halves, which overflows only if the result does."""
    root = exp(size * 0.5)
    return root * 0.5 * root


def _either(short: Function, precise: Function) -> Function:
    """`short` for float32, computed in float64 and rounded; `precise` for float64."""

    def apply(x: Value) -> Value:
        f = x.function
        if x.type.element == "double":
            return precise(x)
        return f.convert("fptrunc", short(f.convert("fpext", x, F64)), F32)

    return apply


def _asinh(x: Value) -> Value:
    f = x.function
    size = f.intrinsic("fabs", x)
    result = log(size + f.intrinsic("sqrt", f.fma(size, size, 1.0)))
    return _near_zero(x, f.intrinsic("copysign", result, x))


def _acosh(x: Value) -> Value:
    """A root for each factor: a single root would accept ``x < -1``."""
    f = x.function
    return log(x + f.intrinsic("sqrt", x - 1.0) * f.intrinsic("sqrt", x + 1.0))


def _atanh(x: Value) -> Value:
    return _near_zero(x, log((x + 1.0) / (1.0 - x)) * 0.5)


FUNCTIONS: Mapping[str, Callable[..., Value]] = {
    "sinh": _either(_sinh, _precise_sinh),
    "cosh": _either(_cosh, _precise_cosh),
    "asinh": by_double("asinh", _asinh),
    "acosh": by_double("acosh", _acosh),
    "atanh": by_double("atanh", _atanh),
}
