"""What an element reads and computes, with the sums and the choices around it."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from relax_egraph.ir.dtypes import is_float
from relax_egraph.prove.conditions import Condition
from relax_egraph.prove.functions import absolute
from relax_egraph.prove.polynomial import Index, Polynomial, product, variables_in
from relax_egraph.prove.reals import Comparison, excluded, symbols_of
from relax_egraph.prove.sums import (
    Applied,
    Counted,
    Factor,
    Folded,
    Read,
    Sum,
    names_of_factor,
    numbered,
)
from relax_egraph.prove.tensors import Place

TESTS = frozenset(("<", "<=", ">", ">=", "==", "!=", "isnan", "isinf", "isfinite"))
"""Functions that are ordinary truth values of NaN and infinities."""

_STRICT = ("+", "*", "max", "min", "tensor")
"""Reductions that are NaN if an element is."""


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
class Occurrence:
    """A factor of an element, within sums over `binders` where conditions hold.

    It counts only where each of `choices`, a truth value, is true, or is not.  `kinds` are those of
    the reductions over `binders`; maxima and minima are of one kind.  It is `tested` if a function
    around it makes plain numbers of NaN, and may be an operand of the function `of`.
    """

    factor: Factor
    binders: tuple[Index, ...] = ()
    where: tuple[Condition, ...] = ()
    choices: tuple[tuple[Sum, bool], ...] = ()
    kinds: tuple[str, ...] = ()
    tested: bool = False
    of: str = ""

    @property
    def name(self) -> str:
        """What is read: a tensor, or a number of the rule; empty if it is computed."""
        match self.factor:
            case Read(tensor):
                return tensor
            case Applied(function, ()) if function.startswith("number "):
                return function
            case _:
                return ""

    @property
    def is_within(self) -> bool:
        """Whether it counts only within sums, by choices or for a test."""
        return bool(self.binders or self.where or self.choices or self.tested)

    @property
    def text(self) -> str:
        """Equal occurrences have one text, whatever the names of their variables are."""
        binders = ",".join(f"{b.name}<{b.extent.key}" for b in self.binders)
        where = ";".join(c.key for c in self.where)
        choices = ";".join(f"{holds}{test.key}" for test, holds in self.choices)
        return numbered(f"{self.factor.key}|{binders}|{where}|{choices}|{self.tested}{self.of}")

    @property
    def times(self) -> tuple[frozenset[str], str]:
        """The kinds of reductions over elements of it, and how often others have the same one.

        For each kind, that is the product of the extents that it does not depend on.
        """
        names = names_of_factor(self.factor)
        pairs = [*zip(self.binders, self.kinds, strict=True)]
        others = {
            kind: product(b.extent for b, k in pairs if k == kind and b.name not in names)
            for kind in sorted(set(self.kinds))
        }
        texts = (f"{kind} {count.key}" for kind, count in others.items() if count.number != 1)
        return frozenset(k for b, k in pairs if b.name in names), ";".join(texts)


NOWHERE = Occurrence(Counted(Polynomial()))


def occurrences(a: Sum, around: Occurrence = NOWHERE) -> Iterator[Occurrence]:
    """All factors of an element, each within what is `around` it."""
    for t in a.terms:
        inner = replace(
            around,
            binders=(*around.binders, *t.binders),
            kinds=(*around.kinds, *("+" for _ in t.binders)),
            where=(*around.where, *t.where),
        )
        for f in t.factors:
            here = replace(inner, factor=f)
            yield here
            yield from _within(here)


def _within(here: Occurrence) -> Iterator[Occurrence]:
    inside = replace(here, of="")
    match here.factor:
        case Read(_, _, index):
            for place in places(index):
                yield from occurrences(place, replace(inside, tested=True))
        case Counted(value):
            for place in places((value,)):
                yield from occurrences(place, replace(inside, tested=True))
        case Applied("select", (condition, x, y)):
            yield from occurrences(condition, replace(inside, tested=True))
            for side, holds in ((x, True), (y, False)):
                choices = (*inside.choices, (condition, holds))
                yield from occurrences(side, replace(inside, choices=choices))
        case Applied(function, args) as f:
            tested = inside.tested or is_test(f)
            for place, arg in enumerate(args):
                others = (*args[:place], *args[place + 1 :])
                plain = arg.factor is not None and not any(map(symbols_of, others))
                of = function if plain else ""
                yield from occurrences(arg, replace(inside, tested=tested, of=of))
        case Folded(function, binders, where, of_all) as f:
            kind = "max" if function == "min" else function
            within = replace(
                inside,
                binders=(*inside.binders, *binders),
                where=(*inside.where, *where),
                kinds=(*inside.kinds, *(kind for _ in binders)),
                tested=inside.tested or is_test(f),
            )
            yield from occurrences(of_all, within)


def places(index: Iterable[Polynomial]) -> Iterator[Sum]:
    """The elements that an index is made of."""
    for p in index:
        yield from (v.value for v in variables_in(p) if isinstance(v, Place))


def is_test(f: Factor) -> bool:
    """Whether a function of floats is an ordinary value of NaN: a test, or an integer."""
    match f:
        case Applied(function, _, dtype) if function.startswith("to "):
            return is_float(dtype) and not is_float(function.removeprefix("to "))
        case Applied(function, _, dtype):
            return function in TESTS and dtype == "float"
        case Folded(function, _, _, _, dtype):
            return function not in _STRICT and dtype == "float"
        case _:
            return False


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
        excluded(numbers, number, value) or excluded(numbers, size, abs(value))
        for value in (math.nan, math.inf, -math.inf)
        if value != _IGNORED.get(of)
    )


_IGNORED = {"max": -math.inf, "min": math.inf}
"""What a function ignores in an operand."""


def _name(number: Sum) -> str:
    f = number.factor
    return f.function if isinstance(f, Applied) else ""
