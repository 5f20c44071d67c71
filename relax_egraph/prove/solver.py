"""Whether conditions on integers follow from what is assumed."""

import math
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any

from relax_egraph.prove.conditions import (
    Condition,
    Junction,
    Negation,
    Nonnegative,
    Zero,
    negated,
)
from relax_egraph.prove.digits import nonnegative
from relax_egraph.prove.effort import QUERY, Effort
from relax_egraph.prove.polynomial import (
    Digit,
    Extreme,
    Index,
    Polynomial,
    Quotient,
    Remainder,
    Variable,
    key_of,
    product,
    variables_in,
)
from relax_egraph.prove.questions import ask, z3

EFFORT = 200_000
"""The steps for one question, in the solver's measure; beyond them nothing is proven."""


class Solver:
    """What is assumed of integers, and questions about it."""

    def __init__(self, effort: Effort) -> None:
        self.effort = effort
        self.assumed: list[Condition] = []
        self.count = 0
        self.answers: dict[str, bool] = {}
        self.axes = ""

    @contextmanager
    def scope(self, assumed: Iterable[Condition] = ()) -> Generator[None]:
        """Assume more for a while."""
        before = len(self.assumed)
        self.assumed += assumed
        try:
            yield
        finally:
            del self.assumed[before:]

    def begin(self, extents: Iterable[Polynomial]) -> None:
        """Begin with axes of other extents, whose variables have the names of those before."""
        self.axes = ",".join(e.key for e in extents)

    def assume(self, c: Condition) -> None:
        """Assume a condition."""
        self.assumed.append(c)

    def holds(self, c: Condition) -> bool:
        """Whether a condition is proven."""
        return _is_plain(c) or self.impossible((negated(c),))

    def impossible(self, conditions: Iterable[Condition]) -> bool:
        """Whether it is proven that not all of `conditions` hold."""
        several = tuple(conditions)
        if any(_is_plain(negated(c)) for c in several):
            return True
        asked = (*self.assumed, *several)
        key = ";".join((self.axes, *sorted(c.key for c in asked)))
        if key not in self.answers:
            self.answers[key] = self.ask(asked)
        return self.answers[key]

    def ask(self, conditions: Sequence[Condition]) -> bool:
        """Whether the solver finds that not all of `conditions` hold."""
        self.effort.spend(QUERY)
        into = Integers()
        terms = [into.condition(c) for c in conditions]
        self.count += 1
        return ask((*terms, *into.known), EFFORT) == "impossible"


def _is_plain(c: Condition) -> bool:
    """Whether the ranges of variables prove a condition."""
    match c:
        case Nonnegative(p):
            return nonnegative(p) and _is_within(p)
        case Zero(p):
            return p.number == 0
        case Negation(Zero(p)):
            return (nonnegative(p - 1) or nonnegative(-p - 1)) and _is_within(p)
        case Negation():
            return False
        case Junction("and", parts):
            return all(map(_is_plain, parts))
        case Junction(_, parts):
            return any(map(_is_plain, parts))


def _is_within(p: Polynomial) -> bool:
    """Whether the positions of all digits in `p` are plainly those of elements."""
    return not any(within(v) for v in variables_in(p) if isinstance(v, Digit))


class Integers:
    """Terms of z3 for polynomials and conditions; `known` are the ranges of variables."""

    def __init__(self) -> None:
        self.known: list[Any] = []
        self.names: dict[str, Any] = {}

    def condition(self, c: Condition) -> Any:
        """A condition as a term."""
        match c:
            case Nonnegative(p):
                return self.integer(p) >= 0
            case Zero(p):
                return self.integer(p) == 0
            case Negation(a):
                return z3().Not(self.condition(a))
            case Junction(kind, ()):
                return z3().BoolVal(kind == "and")
            case Junction(kind, parts):
                return (z3().And if kind == "and" else z3().Or)(*map(self.condition, parts))

    def integer(self, p: Polynomial) -> Any:
        """A polynomial as a term."""
        total: Any = z3().IntVal(0)
        for monomial, c in p.terms.items():
            term: Any = z3().IntVal(c)
            for v in monomial:
                term = term * self.variable(v)
            total = total + term
        return total

    def variable(self, v: Variable) -> Any:
        """A variable as a term."""
        key = key_of(v)
        if key not in self.names:
            self.names[key] = self.made(v, key)
        return self.names[key]

    def made(self, v: Variable, key: str) -> Any:
        """The term of a variable that has none yet."""
        match v:
            case Quotient(a, b):
                return self.integer(a) / self.integer(b)
            case Remainder(a, b):
                return self.integer(a) % self.integer(b)
            case Extreme(greater, a, b):
                x, y = self.integer(a), self.integer(b)
                return z3().If((x >= y) == greater, x, y)
            case _:
                pass
        known = z3().Int(key)
        match v:
            case str():
                self.known.append(known >= 0)
            case Index(_, extent):
                self.known += [known >= 0, known < self.integer(extent)]
            case Digit():
                self.digit(v, known)
            case _:
                pass
        return known

    def digit(self, v: Digit, known: Any) -> None:
        """Add what is `known` of a digit, whose position need not be one of an element."""
        said = [known >= 0, known < self.integer(v.shape[v.axis])]
        inner = [d.number for d in v.shape[1:]]
        if None not in inner:  # the stride is a number
            places = self.integer(v.position) / math.prod(n or 0 for n in inner[v.axis :])
            said.append(known == (places % inner[v.axis - 1] if v.axis else places))
        inside = [self.condition(c) for c in within(v)]
        self.known += [z3().Implies(z3().And(*inside), z3().And(*said))] if inside else said


def within(v: Digit) -> list[Condition]:
    """What has to hold for the position of a digit to be that of an element, if that is not plain.

    Digits in the position have to be in their ranges, too.
    """
    last = product(v.shape) - 1
    nested = (w for w in variables_in(v.position) if isinstance(w, Digit))
    own = [Nonnegative(p) for p in (v.position, last - v.position) if not nonnegative(p)]
    return [c for w in nested for c in within(w)] + own
