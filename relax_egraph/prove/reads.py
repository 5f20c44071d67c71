"""What an element reads: operands and numbers, within which sums, or by a choice."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from relax_egraph.prove.functions import absolute
from relax_egraph.prove.polynomial import Polynomial
from relax_egraph.prove.reals import Comparison, symbols_of
from relax_egraph.prove.sums import Applied, Counted, Folded, Read, Sum


def has_reductions(a: Sum) -> bool:
    """Whether an element is made of more than single elements."""
    return any(
        t.binders
        or any(
            isinstance(f, Folded) or (isinstance(f, Applied) and any(map(has_reductions, f.args)))
            for f in t.factors
        )
        for t in a.terms
    )


@dataclass(frozen=True)
class Reading:
    """A tensor or a number that an element reads, within sums over `extents`, or by a choice.

    `kinds` are those of the reductions around it; maxima and minima are of one kind.  It may be an
    operand of the function `of`.
    """

    name: str
    extents: tuple[Polynomial, ...]
    chosen: bool
    kinds: frozenset[str]
    of: str = ""


def readings(
    a: Sum,
    extents: tuple[Polynomial, ...] = (),
    chosen: bool = False,
    kinds: frozenset[str] = frozenset(),
    of_function: str = "",
) -> Iterator[Reading]:
    """All that an element reads."""
    for t in a.terms:
        inner = (*extents, *(b.extent for b in t.binders))
        guarded = chosen or bool(t.where)
        for f in t.factors:
            match f:
                case Read(tensor):
                    yield Reading(tensor, inner, guarded, kinds)
                case Applied("select", (condition, x, y)):
                    yield from readings(condition, inner, guarded, kinds)
                    yield from readings(x, inner, True, kinds)
                    yield from readings(y, inner, True, kinds)
                case Applied(function, ()) if function.startswith("number "):
                    yield Reading(function, inner, guarded, kinds, of_function)
                case Applied(function, args):
                    for arg in args:
                        outer = function if arg.factor else ""
                        yield from readings(arg, inner, guarded, kinds, outer)
                case Folded(function, binders, where, of):
                    within = (*inner, *(b.extent for b in binders))
                    folded = kinds | {"max" if function == "min" else function}
                    yield from readings(of, within, guarded or bool(where), folded)
                case Counted():
                    pass


def is_finite(name: str, numbers: Sequence[Comparison], of: str = "") -> bool:
    """Whether a number of a rule is assumed to be finite, or what the function `of` it ignores.

    The rule compares it, or its size.
    """
    sides = (side for c in numbers for side in (c.a, c.b))
    number = next((n for side in sides for n in symbols_of(side) if _name(n) == name), None)
    if number is None:
        return False
    size = absolute(number)
    return all(
        any(c.excludes(number, value) or c.excludes(size, abs(value)) for c in numbers)
        for value in (math.nan, math.inf, -math.inf)
        if value != _IGNORED.get(of)
    )


_IGNORED = {"max": -math.inf, "min": math.inf}
"""What a function ignores in an operand."""


def _name(number: Sum) -> str:
    f = number.factor
    return f.function if isinstance(f, Applied) else ""
