"""Ranges of sizes, each of which gets a plan of its own.

    variants={"s": [(1, 1), (2, 64), (65, None)]}

Both ends belong to a range; ``None`` leaves the upper one open.  Every plan is right for every
size, and is only chosen by what it costs in its range: ranges need not cover all sizes.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import isqrt, prod
from typing import TypeAlias

from relax_egraph.base.parameters import collection, mapping
from relax_egraph.errors import known_names

Variants: TypeAlias = Mapping[str, Sequence[tuple[int, int | None]]]
"""For each symbol the ranges that get plans of their own, ascending."""

VARIANTS = mapping(
    'ranges by symbol, such as {"n": [(1, 1), (2, None)]}',
    collection("a sequence of ranges, such as [(1, 1), (2, None)]"),
)
"""What variants are; `parts_of` says what a range is."""

MOST = 16
"""Combinations of ranges of several symbols at most, those in between among them."""

_OPEN, _LEAST = 4, 16
"""A range without an upper end is priced at 4 times its lower end, or at 4 times 16."""


@dataclass(frozen=True, slots=True)
class Part:
    """The sizes of `symbol` from `least` to `most`, or all above; `asked` for, or in between."""

    symbol: str
    least: int
    most: int | None
    asked: bool = True

    def __str__(self) -> str:
        if self.most == self.least:
            return f"{self.symbol} = {self.least}"
        if self.most is None:
            return f"{self.symbol} >= {self.least}"
        return f"{self.least} <= {self.symbol} <= {self.most}"

    def __contains__(self, size: int | None) -> bool:
        return size is not None and self.least <= size and (self.most is None or size <= self.most)


Case: TypeAlias = tuple[Part, ...]
"""A part of the sizes of each of several symbols: what one plan is for."""


def parts_of(variants: Variants, symbols: Collection[str]) -> dict[str, tuple[Part, ...]]:
    """The sizes of each symbol in `variants`, in parts, from 0 on.

    What lies in between of the ranges is a part; but size 0 belongs to a range that begins at 1,
    as nothing is computed there.  Raises ``ValueError`` for what are no ranges in ascending
    order, for a symbol that is none of `symbols`, or for too many combinations.
    """
    for name in variants:
        if name not in symbols:
            message = "no parameter has it alone as a dimension"
            raise ValueError(f"variants of {name}: {message}; {known_names(name, symbols)}")
    parts = {name: tuple(_parts(name, ranges)) for name, ranges in variants.items()}
    if (count := prod(map(len, parts.values()))) > MOST:
        each = " · ".join(f"{len(p)} of {name}" for name, p in parts.items())
        raise ValueError(f"variants: {each} are {count} combinations of ranges, at most {MOST}")
    return parts


def cases(parts: Mapping[str, tuple[Part, ...]], symbols: Collection[str]) -> list[Case]:
    """Every combination of the parts of those of `symbols` that have parts."""
    return [*product(*(p for name, p in parts.items() if name in symbols))]


def middle(least: int, most: int | None) -> int:
    """The geometric mean of the ends of a range; without an upper end it is `_OPEN` times more."""
    if most is None:
        return _OPEN * max(least, _LEAST)
    return isqrt(max(least, min(1, most)) * most)


def _parts(symbol: str, ranges: Iterable[tuple[int, int | None]]) -> list[Part]:
    """The ranges of `symbol`, and what is between them."""
    parts: list[Part] = []
    free: int | None = 0
    before: object = None
    for given in ranges:
        least, most = _ends(symbol, given)
        if free is None or least < free:
            raise ValueError(f"variants of {symbol}: {given} overlaps {before}, or precedes it")
        if free == 0 and least == 1:
            least = 0
        if least > free:
            parts.append(Part(symbol, free, least - 1, asked=False))
        parts.append(Part(symbol, least, most))
        free, before = (None if most is None else most + 1), given
    if not parts:
        raise ValueError(f"variants of {symbol}: there are no ranges")
    if free is not None:
        parts.append(Part(symbol, free, None, asked=False))
    return parts


def _ends(symbol: str, given: object) -> tuple[int, int | None]:
    match given:
        case (int() as least, int() | None as most):
            pass
        case _:
            needed = "a pair of sizes, such as (2, 64) or (65, None)"
            raise ValueError(f"variants of {symbol}: {given!r} is no range: needs {needed}")
    if least < 0:
        raise ValueError(f"variants of {symbol}: {given!r} is no range: a size is not negative")
    if most is not None and most < least:
        raise ValueError(f"variants of {symbol}: {given!r} is no range: it ends before it begins")
    return least, most
