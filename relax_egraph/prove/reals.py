"""Numbers of rules: symbolic constants, and what is assumed of them and of elements."""

import math
import operator
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from relax_egraph.prove import functions, sums
from relax_egraph.prove.nodes import Value
from relax_egraph.prove.sums import Sum
from relax_egraph.verify.instances.primitives import in_order

COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
"""The comparisons of numbers."""


@dataclass(frozen=True)
class Comparison:
    """``a < b`` and its like, of numbers."""

    kind: str
    a: Sum
    b: Sum

    @property
    def decided(self) -> bool | None:
        """Whether it holds; ``None`` if the numbers are symbolic."""
        x, y = as_float(self.a), as_float(self.b)
        if x is None or y is None:
            return True if self.kind in ("=", "<=", ">=") and self.a.key == self.b.key else None
        return self.of(x, y)

    def of(self, x: float | Fraction, y: float | Fraction) -> bool:
        """Whether it holds of two numbers: premises have NaN above ∞, and equal to itself."""
        return COMPARED[self.kind](in_order(x), in_order(y))

    def excludes(self, number: Sum, value: float) -> bool:
        """Whether it is false if `number` has this value."""
        x = value if self.a.key == number.key else as_float(self.a)
        y = value if self.b.key == number.key else as_float(self.b)
        if number.key not in (self.a.key, self.b.key):
            return False
        if math.isnan(value) and None in (x, y):  # nothing is above NaN
            return self.kind == ("<" if y is None else ">")
        return x is not None and y is not None and not self.of(x, y)

    @property
    def high(self) -> Sum:
        """The number that is said to be the greater one."""
        return self.b if self.kind in ("<", "<=") else self.a

    @property
    def is_positive(self) -> bool:
        """Whether it says that one symbol is positive."""
        high = self.high
        known = as_float(self.a if high is self.b else self.b)
        least = known is not None and (known > 0 or (known == 0 and self.kind in ("<", ">")))
        return self.kind in ("<", "<=", ">", ">=") and least and high.factor is not None


def excluded(numbers: Sequence[Comparison], number: Sum, value: float) -> bool:
    """Whether a number is never NaN, ∞ or another `value`, by what it is compared with."""
    if any(c.excludes(number, value) for c in numbers):
        return True
    for place, c in enumerate(numbers):
        rest = (*numbers[:place], *numbers[place + 1 :])
        for one, other, kinds in ((c.a, c.b, ("<", "<=", "=")), (c.b, c.a, (">", ">=", "="))):
            if one.key != number.key or c.kind not in kinds or as_float(other) is not None:
                continue
            above = (value,) if c.kind == "=" else _ABOVE.get(str(value), ())
            if above and all(excluded(rest, other, v) for v in above):
                return True  # the other is not as great
    return False


_ABOVE = {"inf": (math.inf, math.nan), "nan": (math.nan,)}
"""What is not below a value."""


@dataclass(frozen=True)
class Bound:
    """Every element of `value` is ``>=``, ``<=`` or ``!=`` `limit`, or ``finite``."""

    value: Value
    kind: str
    limit: Sum


def as_float(a: Sum) -> float | Fraction | None:
    """The value of a number that is not symbolic."""
    if a.number is not None:
        return a.number
    f = a.factor
    if isinstance(f, sums.Applied) and f.function in ("inf", "-inf", "nan"):
        return float(f.function)
    return None


def number(value: Any) -> Sum:
    """A number of a rule."""
    if isinstance(value, Sum):
        return value
    return functions.real(float(value))


def computed(head: str, args: Sequence[Any]) -> Sum:
    """A primitive of rules, of numbers of which one is symbolic."""
    match head, [number(a) for a in args]:
        case "+", [a, b] if not _cancel(a, b):
            return sums.add(a, b)
        case "-", [a, b] if not _cancel(a, sums.scale(b, -1)):
            return sums.add(a, sums.scale(b, -1))
        case "-" | "neg", [a]:
            return sums.scale(a, -1)
        case "*", [a, b] if not _spread(a, b):
            return functions.times(a, b)
        case "/", [a, b] if not _spread(a, functions.inverse(b)):
            return functions.times(a, functions.inverse(b))
        case (("max" | "min"), [a, b]):
            return sums.apply(head, a, b, dtype="float" if head == "max" else "number")
        case "abs", [a]:
            return functions.absolute(a)
        case _, numbers:
            return sums.apply(f"primitive {head}", *numbers)


EXACT = frozenset(("neg", "abs", "min", "max"))
"""The primitives of numbers that do not round."""

INFINITE = frozenset((math.inf, -math.inf))

LIMITS: Mapping[str, Set[float]] = {
    **dict.fromkeys(("+", "-"), INFINITE | {0.0}),  # a difference is 0 of equal numbers only
    **dict.fromkeys(("*", "/"), INFINITE),
}
"""The numbers that results of primitives are above or below, whether they are rounded or not."""


def _cancel(a: Sum, b: Sum) -> bool:
    """Whether ``a + b`` lacks a term of both, which is NaN of infinite symbols."""
    return any(
        s.factors == t.factors and s.coefficient * t.coefficient < 0
        for s in a.terms
        for t in b.terms
        if s.factors
    )


def _spread(a: Sum, b: Sum) -> bool:
    """Whether a symbol is multiplied by 0, or by a sum, which is not 0 or NaN where terms are."""
    return any(
        y.number is None and (x.number == 0 or len(x.terms) > 1) for x, y in ((a, b), (b, a))
    )


def symbols_of(number: Sum) -> list[Sum]:
    """The symbolic numbers in a number."""
    applied = (f for f in sums.factors_in(number) if isinstance(f, sums.Applied))
    return [sums.single(f) for f in applied if not f.args and f.function.startswith("number ")]


def divisors_in(number: Sum) -> list[Sum]:
    """The numbers that a number is divided by."""
    applied = (f for f in sums.factors_in(number) if isinstance(f, sums.Applied))
    return [f.args[0] for f in applied if f.function == "inverse"]


def is_computed(number: Sum) -> bool:
    """Whether a number is neither a constant, nor a symbol, nor one of several."""
    f = number.factor
    if isinstance(f, sums.Applied) and f.function in ("max", "min"):
        return any(map(is_computed, f.args))
    return as_float(number) is None and [number.key] != [s.key for s in symbols_of(number)]
