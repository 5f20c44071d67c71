"""Equality of elements in each case of the signs of real numbers that maxima and choices look at.

Where ``a - b`` is positive, ``max(a, b)`` is `a`; so with minima, absolute values, and what a
comparison chooses.  What both sides are in a case is put in the form of sums of products again.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from relax_egraph.prove import functions
from relax_egraph.prove.algebra import chosen, extreme
from relax_egraph.prove.effort import CASE, Effort
from relax_egraph.prove.equality import Equality
from relax_egraph.prove.reals import COMPARED
from relax_egraph.prove.sums import (
    NOTHING,
    Applied,
    Factor,
    Read,
    Sum,
    add,
    apply,
    factors_in,
    number,
    scale,
    single,
    summed,
)

MOST_SIGNS = 3
"""The most numbers of which the signs are cases."""


@dataclass(frozen=True)
class Known:
    """The `signs` of numbers by their text, and `values` of factors in those that are 0."""

    signs: Mapping[str, int] = field(default_factory=dict[str, int])
    values: Mapping[str, Sum] = field(default_factory=dict[str, Sum])

    def with_sign(self, p: Sum, sign: int) -> "Known":
        """What is known with the sign of one more number."""
        text, direction = normal(p)
        values = self.values if sign else {**self.values, **solved(p)}
        return Known({**self.signs, text: direction * sign}, values)

    def sign(self, p: Sum) -> int | None:
        """The sign of a number; ``None`` if it is not known."""
        if p.number is not None:
            return (p.number > 0) - (p.number < 0)
        text, sign = normal(p)
        return sign * self.signs[text] if text in self.signs else None


@dataclass(frozen=True)
class Signs:
    """Compares in cases; `equality` decides each of them."""

    equality: Equality
    effort: Effort

    def equal(self, a: Sum, b: Sum, known: Known | None = None) -> bool:
        """Whether two elements of floats are equal, whatever is not `known` of signs."""
        known = known or Known()
        self.effort.spend(CASE)
        x, y = rebuilt(a, known), rebuilt(b, known)
        if known.signs and self.equality.sums(x, y):
            return True
        pivot = next((p for s in (x, y) for p in looked_at(s)), None)
        if pivot is None or len(known.signs) == MOST_SIGNS:
            return False
        return all(self.equal(x, y, known.with_sign(pivot, sign)) for sign in (1, 0, -1))


def solved(p: Sum) -> dict[str, Sum]:
    """The value of one factor where a number is 0, by its text."""
    for t in p.terms:
        if len(t.factors) == 1 and not t.binders and not t.where:
            (f,) = t.factors
            rest = add(p, scale(Sum((t,)), -1))
            if isinstance(f, Read) and f not in factors_in(rest):
                return {f.key: scale(rest, -1 / t.coefficient)}
    return {}


def looked_at(a: Sum) -> Iterator[Sum]:
    """The numbers of which an element looks at the sign, outside of its reductions."""
    for t in a.terms:
        for f in t.factors if not t.binders else ():
            if isinstance(f, Applied):
                for arg in f.args:
                    yield from looked_at(arg)
                p = compared(f)
                if p is not None and p.terms:
                    yield p


def compared(f: Applied) -> Sum | None:
    """The number of which a function looks at the sign; ``None`` if it does not."""
    match f:
        case Applied("abs", (a,), "" | "float"):
            return a
        case Applied(function, (a, b), "float") if function in ("max", "min") or (
            function in COMPARED or function == "=="
        ):
            return add(a, scale(b, -1))
        case _:
            return None


def normal(p: Sum) -> tuple[str, int]:
    """The text of a number, the same for its positive and negative multiples; its sign in that."""
    first = min(p.terms, key=lambda t: t.key).coefficient
    return scale(p, 1 / abs(first) if first > 0 else -1 / abs(first)).key, 1 if first > 0 else -1


def rebuilt(a: Sum, known: Known) -> Sum:
    """`a` where signs of numbers are `known`."""
    result = NOTHING
    for t in a.terms:
        product = number(t.coefficient)
        for f in t.factors:
            product = functions.times(product, _factor(f, known))
        result = add(result, summed(product, t.binders, t.where))
    return result


def _factor(f: Factor, known: Known) -> Sum:
    if f.key in known.values:
        return known.values[f.key]
    if not isinstance(f, Applied):
        return single(f)
    made = Applied(f.function, tuple(rebuilt(x, known) for x in f.args), f.dtype)
    p = compared(made)
    sign = None if p is None else known.sign(p)
    match made:
        case Applied("abs", (x,)) if sign is not None:
            return scale(x, sign or 1)
        case Applied("max" | "min" as function, (x, y)) if sign is not None:
            return x if (sign >= 0) == (function == "max") else y
        case Applied(function, (_, _)) if sign is not None:
            return number(COMPARED[{"==": "="}.get(function, function)](sign, 0))
        case Applied("select", (condition, x, y)):
            return chosen(condition, x, y, f.dtype)
        case Applied("max" | "min" as function, (x, y)):
            return extreme(function, x, y, f.dtype)
        case Applied("inverse", (x,)):
            return functions.inverse(x)
        case Applied(function, args, "") if function in functions.FUNCTIONS:
            return functions.FUNCTIONS[function](*args)
        case Applied(function, args, dtype):
            return apply(function, *args, dtype=dtype)
