"""Real numbers with infinities and NaN, as terms of the solver."""

from dataclasses import dataclass
from typing import Any

from relax_egraph.prove.questions import z3


@dataclass(frozen=True)
class Extended:
    """A number that is NaN, or infinite with a sign, or real."""

    nan: Any
    sign: Any
    real: Any


def real(value: Any) -> Extended:
    """A real number: an integer, a fraction, or a term of the solver."""
    number = value if hasattr(value, "sort") else z3().RealVal(str(value))
    return Extended(z3().BoolVal(False), z3().IntVal(0), number)


def plus(x: Extended, y: Extended) -> Extended:
    """The sum; infinities of both signs have none."""
    nan = z3().Or(x.nan, y.nan, x.sign * y.sign < 0)
    return Extended(nan, z3().If(x.sign != 0, x.sign, y.sign), x.real + y.real)


def signum(x: Extended) -> Any:
    """The sign of a number, 0 of 0."""
    finite = z3().If(x.real > 0, 1, z3().If(x.real < 0, -1, 0))
    return z3().If(x.sign != 0, x.sign, finite)


def times(x: Extended, y: Extended) -> Extended:
    """The product; 0 times infinity has none."""
    infinite = z3().Or(x.sign != 0, y.sign != 0)
    sign = signum(x) * signum(y)
    nan = z3().Or(x.nan, y.nan, z3().And(infinite, sign == 0))
    return Extended(nan, z3().If(infinite, sign, 0), x.real * y.real)


def inverse(x: Extended, quotient: Any, of_zero: Any) -> Extended:
    """``1 / x``: for 0 infinite, with the sign `of_zero`, and 0 for what is infinite."""
    zero = z3().And(x.sign == 0, x.real == 0)
    value = z3().If(x.sign != 0, z3().RealVal(0), quotient)
    return Extended(x.nan, z3().If(zero, of_zero, 0), value)


def compared(kind: str, x: Extended, y: Extended) -> Any:
    """A comparison, false of NaN; only ``!=`` is true of it."""
    a, b = x.sign, y.sign
    less = z3().Or(a < b, z3().And(a == b, a == 0, x.real < y.real))
    equal = z3().And(a == b, z3().Or(a != 0, x.real == y.real))
    number = z3().Not(z3().Or(x.nan, y.nan))
    match kind:
        case "<":
            return z3().And(number, less)
        case "<=":
            return z3().And(number, z3().Or(less, equal))
        case ">" | ">=":
            return compared(kind.replace(">", "<"), y, x)
        case "==":
            return z3().And(number, equal)
        case _:
            return z3().Not(z3().And(number, equal))


def ordered(kind: str, x: Extended, y: Extended) -> Any:
    """A comparison of a premise: NaN is above ∞, and equal to itself."""
    match kind:
        case "<" | "<=":
            less = z3().And(z3().Not(x.nan), z3().Or(y.nan, compared(kind, x, y)))
            return less if kind == "<" else z3().Or(y.nan, less)
        case ">" | ">=":
            return ordered(kind.replace(">", "<"), y, x)
        case "==":
            return z3().Or(z3().And(x.nan, y.nan), compared(kind, x, y))
        case _:
            return z3().Not(ordered("==", x, y))


def truth(condition: Any) -> Extended:
    """A truth value as a number."""
    return Extended(
        z3().BoolVal(False), z3().IntVal(0), z3().If(condition, z3().RealVal(1), z3().RealVal(0))
    )


def holds(x: Extended) -> Any:
    """A number as a truth value."""
    return x.real != 0


def chosen(condition: Any, x: Extended, y: Extended) -> Extended:
    """One of two numbers."""
    pairs = ((x.nan, y.nan), (x.sign, y.sign), (x.real, y.real))
    return Extended(*(z3().If(condition, a, b) for a, b in pairs))


def extreme(greater: bool, x: Extended, y: Extended) -> Extended:
    """The greater of two numbers, or the lesser; NaN if either is."""
    first = compared(">=" if greater else "<=", x, y)
    best = chosen(first, x, y)
    return Extended(z3().Or(x.nan, y.nan), best.sign, best.real)
