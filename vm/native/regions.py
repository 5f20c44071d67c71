"""Parts of a native program that begin with numbers, checks and memory, and go on with steps.

A program without loops is one region: all that may leave the call comes before all kernels.  What
depends on which turn of a loop it is comes in each turn, so that a loop has regions of its own,
and so has what follows it, which depends on how the loop has ended.

A region is entered from its `parent` at most once in a turn of its `loop`; what the parent has
computed holds in it.  Within a loop each way from a branch is a region, for what holds in all turns
need not hold in the last one.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from relax_egraph.vm.native.numbers import Computed, Number


@dataclass(frozen=True, slots=True)
class Check:
    """What must hold of two numbers."""

    kind: Literal["equal", "at most"]
    a: Number
    b: Number


@dataclass(slots=True, eq=False)
class Loop:
    """Steps `first … last - 1` of a trace, which run again and again; `within` another loop."""

    within: "Loop | None"
    first: int = 0
    last: int = 0

    def is_within(self, other: "Loop | None") -> bool:
        """Whether each turn of this loop is in a turn of `other`, or is one; all are in none."""
        return other is None or any(loop is other for loop in outwards(self))


def outwards(loop: Loop | None) -> Iterator[Loop]:
    """A loop and those that it is in."""
    while loop is not None:
        yield loop
        loop = loop.within


@dataclass(slots=True, eq=False)
class Region:
    """See above; `divisions` have to be done even if nobody asks: they may divide by zero.

    The first region of a loop has the numbers that are `carried`.
    """

    parent: "Region | None" = None
    loop: Loop | None = None
    checks: list[Check] = field(default_factory=list[Check])
    divisions: list[Computed] = field(default_factory=list[Computed])
    carried: set[Computed] = field(default_factory=set[Computed])
    is_entered: bool = False

    def is_in(self, loop: Loop | None) -> bool:
        """Whether the region is in `loop`, or in a loop within."""
        return loop is None or (self.loop is not None and self.loop.is_within(loop))

    def upwards(self) -> "Iterator[Region]":
        """The region, and those that it follows."""
        region: Region | None = self
        while region is not None:
            yield region
            region = region.parent


def common(regions: "Iterable[Region]") -> Region:
    """The last region that comes before all of `regions`, or is one of them."""
    first, *others = regions
    ways = [set(map(id, region.upwards())) for region in others]
    return next(r for r in first.upwards() if all(id(r) in way for way in ways))


def is_known_in(number: Number, region: Region) -> bool:
    """Whether `number` depends on nothing that is carried but by loops that `region` is in."""
    if isinstance(number, int):
        return True
    if number.kind == "carried":
        return any(number in r.carried for r in region.upwards())
    if number.kind in ("extent", "integer", "item"):
        return True
    return all(is_known_in(operand, region) for operand in number.operands)
