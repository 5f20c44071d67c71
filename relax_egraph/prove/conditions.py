"""Conditions on extents and indices."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from relax_egraph.prove.polynomial import Polynomial


@dataclass(frozen=True, slots=True)
class Nonnegative:
    """``p >= 0``."""

    p: Polynomial

    @property
    def key(self) -> str:
        """Equal conditions have one text."""
        return f"0<={self.p.key}"


@dataclass(frozen=True, slots=True)
class Zero:
    """``p == 0``."""

    p: Polynomial

    @property
    def key(self) -> str:
        """Equal conditions have one text."""
        return f"0=={self.p.key}"


@dataclass(frozen=True, slots=True)
class Negation:
    """``not a``."""

    a: "Condition"

    @property
    def key(self) -> str:
        """Equal conditions have one text."""
        return f"not({self.a.key})"


@dataclass(frozen=True, slots=True)
class Junction:
    """All of `parts`, or any of them."""

    kind: Literal["and", "or"]
    parts: "tuple[Condition, ...]"

    @property
    def key(self) -> str:
        """Equal conditions have one text."""
        return f"{self.kind}({';'.join(p.key for p in self.parts)})"


Condition: TypeAlias = Nonnegative | Zero | Negation | Junction

TRUE = Junction("and", ())
FALSE = Junction("or", ())


def negated(c: Condition) -> Condition:
    """The negation of a condition."""
    match c:
        case Nonnegative(p):
            return Nonnegative(-p - 1)
        case Zero():
            return Negation(c)
        case Negation(a):
            return a
        case Junction(kind, parts):
            return Junction("or" if kind == "and" else "and", tuple(map(negated, parts)))


def every(conditions: Iterable[Condition]) -> Condition:
    """Their conjunction."""
    parts = tuple(conditions)
    return parts[0] if len(parts) == 1 else Junction("and", parts)


def mapped(c: Condition, change: Callable[[Polynomial], Polynomial]) -> Condition:
    """`c` with every polynomial changed."""
    match c:
        case Nonnegative(p):
            return Nonnegative(change(p))
        case Zero(p):
            return Zero(change(p))
        case Negation(a):
            return Negation(mapped(a, change))
        case Junction(kind, parts):
            return Junction(kind, tuple(mapped(p, change) for p in parts))


def polynomials_in(c: Condition) -> Iterator[Polynomial]:
    """The polynomials in a condition."""
    match c:
        case Nonnegative(p) | Zero(p):
            yield p
        case Negation(a):
            yield from polynomials_in(a)
        case Junction(_, parts):
            yield from (p for part in parts for p in polynomials_in(part))


def names_in(c: Condition) -> frozenset[str]:
    """The names in a condition."""
    return frozenset[str]().union(*(p.variables for p in polynomials_in(c)))


COMPARISONS: Mapping[str, Callable[[Polynomial, Polynomial], Condition]] = {
    "<": lambda a, b: Nonnegative(b - a - 1),
    "<=": lambda a, b: Nonnegative(b - a),
    ">": lambda a, b: Nonnegative(a - b - 1),
    ">=": lambda a, b: Nonnegative(a - b),
    "==": lambda a, b: Zero(a - b),
    "!=": lambda a, b: Negation(Zero(a - b)),
}
"""Comparisons of indices."""
