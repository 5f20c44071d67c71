"""Floats to integers, with a result for every float: the nearest integer towards 0 that there is.

LLVM's own conversions say nothing of a float out of the integer's range, and those of its that do
(``llvm.fptosi.sat``) leave vectors.
"""

from relax_egraph.lower.emit.instructions import Value
from relax_egraph.lower.emit.module_text import I32, Type


def to_integer(x: Value, element: Type, *, signed: bool) -> Value:
    """`x` rounded towards 0; an end of the range if it is beyond; 0 for NaN."""
    low = -(1 << element.bits - 1) if signed else 0
    high = low + (1 << element.bits) - 1
    significand = 53 if x.type.bits == 64 else 24
    if element.bits - signed <= significand:
        return _of_clamped(x, low, high, element, signed=signed)
    return _of_any(x, low, high, element, signed=signed)


def _of_clamped(x: Value, low: int, high: int, element: Type, *, signed: bool) -> Value:
    """`x` is clamped first, to ends that are floats."""
    f = x.function
    if signed:
        x = f.select(f.compare("==", x, x), x, 0.0)
    x = f.select(f.compare(">", x, float(low)), x, float(low))
    x = f.select(f.compare("<", x, float(high)), x, float(high))
    if element.bits < 32:
        return f.convert("trunc", f.convert("fptosi", x, I32), element)
    return f.convert("fptosi" if signed else "fptoui", x, element)


def _of_any(x: Value, low: int, high: int, element: Type, *, signed: bool) -> Value:
    """What LLVM says nothing of is not chosen."""
    f = x.function
    inside = f.convert("fptosi" if signed else "fptoui", x, element)
    most = f.select(f.compare("<", x, float(high)), inside, high)
    if not signed:
        return f.select(f.compare(">", x, 0.0), most, 0)
    least = f.select(f.compare("<", x, float(low)), f.const(inside.type, low), 0)
    return f.select(f.compare(">=", x, float(low)), most, least)
