"""Saturating conversions of floats to integers, defined for every float.

LLVM's plain conversions are undefined outside the range of the integer, and its saturating ones
(``llvm.fptosi.sat``) are not vectorized.
"""

from relax_egraph.lower.emit.instructions import Value
from relax_egraph.lower.emit.module_text import I32, Type


def to_integer(x: Value, element: Type, *, signed: bool) -> Value:
    """`x` rounded towards 0; saturated if out of range; 0 for NaN."""
    low = -(1 << element.bits - 1) if signed else 0
    high = low + (1 << element.bits) - 1
    significand = 53 if x.type.bits == 64 else 24
    if element.bits - signed <= significand:
        return _by_clamping(x, low, high, element, signed=signed)
    return _by_selection(x, low, high, element, signed=signed)


def _by_clamping(x: Value, low: int, high: int, element: Type, *, signed: bool) -> Value:
    """Clamp `x`, then convert it: for integers whose bounds are floats."""
    f = x.function
    if signed:
        x = f.select(f.compare("==", x, x), x, 0.0)
    x = f.select(f.compare(">", x, float(low)), x, float(low))
    x = f.select(f.compare("<", x, float(high)), x, float(high))
    if element.bits < 32:
        return f.convert("trunc", f.convert("fptosi", x, I32), element)
    return f.convert("fptosi" if signed else "fptoui", x, element)


def _by_selection(x: Value, low: int, high: int, element: Type, *, signed: bool) -> Value:
    """Convert `x`, then replace the undefined results."""
    f = x.function
    inside = f.convert("fptosi" if signed else "fptoui", x, element)
    capped = f.select(f.compare("<", x, float(high)), inside, high)
    if not signed:
        return f.select(f.compare(">", x, 0.0), capped, 0)
    floor = f.select(f.compare("<", x, float(low)), f.const(inside.type, low), 0)
    return f.select(f.compare(">=", x, float(low)), capped, floor)
