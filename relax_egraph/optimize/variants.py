"""Ranges of sizes: each range has its own plan.

    variants={"s": [(1, 1), (2, 64), (65, None)]}

Both ends belong to a range; ``None`` leaves the upper end open.  Every plan is correct for every
size and is chosen by its cost within the range: ranges need not cover all sizes.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import isqrt, prod
from typing import TypeAlias

from relax_egraph.base.parameters import collection, mapping
from relax_egraph.errors import known_names

Variants: TypeAlias = Mapping[str, Sequence[tuple[int, int | None]]]
"""For each symbol, ascending ranges with a plan each."""

VARIANTS = mapping(
    'ranges by symbol, such as {"n": [(1, 1), (2, None)]}',
    collection("a sequence of ranges, such as [(1, 1), (2, None)]"),
)
"""The kind of the option; `parts_of` checks the ranges."""

MOST = 16
"""The most combinations of ranges of several symbols, with the gaps between ranges."""

_OPEN, _LEAST = 4, 16
"""A range without an upper end is priced at 4 times its lower end, or at 4 times 16."""


@dataclass(frozen=True, slots=True)
class Part:
    """The sizes of `symbol` from `least` to `most` or above: a `requested` range, or a gap."""

    symbol: str
    least: int
    most: int | None
    requested: bool = True

    def __str__(self) -> str:
        if self.most == self.least:
            return f"{self.symbol} = {self.least}"
        if self.most is None:
            return f"{self.symbol} >= {self.least}"
        return f"{self.least} <= {self.symbol} <= {self.most}"

    def __contains__(self, size: int | None) -> bool:
        return size is not None and self.least <= size and (self.most is None or size <= self.most)


Case: TypeAlias = tuple[Part, ...]
"""A part of the sizes of each symbol with variants: one plan."""


def parts_of(variants: Variants, symbols: Collection[str]) -> dict[str, tuple[Part, ...]]:
    """The sizes of each symbol in `variants`, from 0 on, cut into parts.

    A gap between ranges is a part; but size 0 belongs to a range that begins at 1, since nothing
    is computed there.  Raises ``ValueError`` for ranges that are malformed or not ascending, for a
    symbol that is not in `symbols`, or for too many combinations.
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
    """Every combination of parts of the `symbols` that have parts."""
    return [*product(*(p for name, p in parts.items() if name in symbols))]


def middle(least: int, most: int | None) -> int:
    """The geometric mean of a range; without an upper end, `_OPEN` times its lower end."""
    if most is None:
        return _OPEN * max(least, _LEAST)
    return isqrt(max(least, min(1, most)) * most)


def _parts(symbol: str, ranges: Iterable[tuple[int, int | None]]) -> list[Part]:
    """The ranges of `symbol`, and the gaps between them."""
    parts: list[Part] = []
    free: int | None = 0
    before: object = None
    for value in ranges:
        least, most = _ends(symbol, value)
        if free is None or least < free:
            raise ValueError(f"variants of {symbol}: {value} overlaps {before}, or precedes it")
        if free == 0 and least == 1:
            least = 0
        if least > free:
            parts.append(Part(symbol, free, least - 1, requested=False))
        parts.append(Part(symbol, least, most))
        free, before = (None if most is None else most + 1), value
    if not parts:
        raise ValueError(f"variants of {symbol}: there are no ranges")
    if free is not None:
        parts.append(Part(symbol, free, None, requested=False))
    return parts


def _ends(symbol: str, value: object) -> tuple[int, int | None]:
    match value:
        case (int() as least, int() | None as most):
            pass
        case _:
            needed = "a pair of sizes, such as (2, 64) or (65, None)"
            raise ValueError(f"variants of {symbol}: {value!r} is no range: needs {needed}")
    if least < 0:
        raise ValueError(f"variants of {symbol}: {value!r} is no range: a size is not negative")
    if most is not None and most < least:
        raise ValueError(f"variants of {symbol}: {value!r} is no range: it ends before it begins")
    return least, most
