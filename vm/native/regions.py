"""Regions of a native program: numbers, checks and memory first, then steps.

A program without loops is one region: every check that may leave the call precedes all kernels.
Numbers that depend on the turn of a loop are computed in each turn, so a loop has its own regions,
and so has the code after it, which depends on the last turn.

A region is entered from its `parent` at most once in a turn of its `loop`; words of the parent are
valid in it.  Within a loop, each way of a branch is a region, because a check that holds in all
turns may fail in the last one.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from relax_egraph.vm.native.numbers import Computed, Number


@dataclass(frozen=True, slots=True)
class Check:
    """A condition on two numbers."""

    kind: Literal["equal", "at most"]
    a: Number
    b: Number


@dataclass(slots=True, eq=False)
class Loop:
    """The steps `first … last - 1` of a trace, which are repeated; `within` is the outer loop."""

    within: "Loop | None"
    first: int = 0
    last: int = 0

    def is_within(self, other: "Loop | None") -> bool:
        """Whether this loop is `other` or nested in it; every loop is within ``None``."""
        return other is None or any(loop is other for loop in outwards(self))


def outwards(loop: Loop | None) -> Iterator[Loop]:
    """A loop and its outer loops."""
    while loop is not None:
        yield loop
        loop = loop.within


@dataclass(slots=True, eq=False)
class Region:
    """See above; `divisions` are computed even if their results are unused: they may fail.

    The first region of a loop has the `carried` numbers.
    """

    parent: "Region | None" = None
    loop: Loop | None = None
    checks: list[Check] = field(default_factory=list[Check])
    divisions: list[Computed] = field(default_factory=list[Computed])
    carried: set[Computed] = field(default_factory=set[Computed])
    is_entered: bool = False

    def is_in(self, loop: Loop | None) -> bool:
        """Whether the region is in `loop`, or in a nested loop."""
        return loop is None or (self.loop is not None and self.loop.is_within(loop))

    def upwards(self) -> "Iterator[Region]":
        """The region and its ancestors."""
        region: Region | None = self
        while region is not None:
            yield region
            region = region.parent


def common(regions: "Iterable[Region]") -> Region:
    """The nearest common ancestor of `regions`."""
    first, *others = regions
    ways = [set(map(id, region.upwards())) for region in others]
    return next(r for r in first.upwards() if all(id(r) in way for way in ways))


def is_known_in(number: Number, region: Region) -> bool:
    """Whether all loops whose carried numbers `number` depends on contain `region`."""
    if isinstance(number, int):
        return True
    if number.kind == "carried":
        return any(number in r.carried for r in region.upwards())
    if number.kind in ("extent", "integer", "item"):
        return True
    return all(is_known_in(operand, region) for operand in number.operands)
