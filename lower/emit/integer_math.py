"""Division and shifts of integers, defined for all operands as in numpy.

The machine's division traps for a zero divisor and for the minimum divided by -1, and LLVM's shifts
are undefined for the width or more.  Here quotient and remainder of a division by 0 are 0.
"""

from relax_egraph.lower.emit.instructions import Value


def floor_divide(a: Value, b: Value, *, signed: bool = True) -> Value:
    """``⌊a / b⌋``, 0 if `b` is 0."""
    return _divide(a, b, signed=signed)[0]


def floor_remainder(a: Value, b: Value, *, signed: bool = True) -> Value:
    """``a mod b`` with the sign of `b`, 0 if `b` is 0."""
    return _divide(a, b, signed=signed)[1]


def remainder(a: Value, b: Value, *, signed: bool = True) -> Value:
    """The remainder of truncating division, with the sign of `a`; 0 if `b` is 0."""
    f = a.function
    a, b = f.match(a, b)
    trivial = f.compare("==", b, 0)
    if signed:
        trivial = trivial | f.compare("==", b, -1)
    return f.binary("srem" if signed else "urem", a, f.select(trivial, 1, b))


def shift_left(a: Value, b: Value) -> Value:
    """``a · 2ᵇ``, which wraps; 0 unless ``0 ≤ b < width``."""
    f = a.function
    a, b = f.match(a, b)
    within = f.compare("<", b, a.type.bits, signed=False)
    return f.select(within, a << f.select(within, b, 0), 0)


def shift_right(a: Value, b: Value, *, signed: bool = True) -> Value:
    """``⌊a / 2ᵇ⌋``; 0, or -1 for negative `a`, unless ``0 ≤ b < width``."""
    f = a.function
    a, b = f.match(a, b)
    within = f.compare("<", b, a.type.bits, signed=False)
    if signed:
        return a >> f.select(within, b, a.type.bits - 1)
    return f.select(within, f.binary(">>>", a, f.select(within, b, 0)), 0)


def _divide(a: Value, b: Value, *, signed: bool) -> tuple[Value, Value]:
    f = a.function
    a, b = f.match(a, b)
    zero = f.const(b.type, 0)
    by_zero = f.compare("==", b, zero)
    if not signed:
        divisor = f.select(by_zero, 1, b)
        quotient = f.binary("udiv", a, divisor)
        rest = a - quotient * divisor
        return f.select(by_zero, zero, quotient), f.select(by_zero, zero, rest)
    negation = f.compare("==", b, -1)
    divisor = f.select(by_zero | negation, 1, b)
    quotient = f.binary("sdiv", a, divisor)
    rest = a - quotient * divisor
    down = f.compare("!=", rest, zero) & f.compare("<", rest ^ divisor, zero)
    quotient = f.select(down, quotient - 1, quotient)
    rest = f.select(down, rest + divisor, rest)
    quotient = f.select(negation, 0 - a, quotient)
    return f.select(by_zero, zero, quotient), f.select(by_zero, zero, rest)


def divide_by_constant(a: Value, divisor: int) -> tuple[Value, Value]:
    """The floor quotient and remainder of signed `a` by a positive `divisor`."""
    f = a.function
    if divisor & (divisor - 1) == 0:
        return a >> (divisor.bit_length() - 1), a & (divisor - 1)
    quotient = f.binary("sdiv", a, divisor)
    rest = a - quotient * divisor
    down = f.compare("<", rest, 0)
    return f.select(down, quotient - 1, quotient), f.select(down, rest + divisor, rest)
