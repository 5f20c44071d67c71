"""A bound on the work of one proof, counted in steps, so that a verdict depends on no clock."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias


class TooSlow(Exception):
    """A proof takes more steps than it may."""


@dataclass
class Effort:
    """The steps that are `left`."""

    left: int

    def spend(self, steps: int) -> None:
        """Take steps; raises `TooSlow` if none are left."""
        self.left -= steps
        if self.left < 0:
            raise TooSlow


QUERY = 15
"""The steps of one question to the solver."""

CASE = 2
"""The steps of one comparison of two elements."""

Schedule: TypeAlias = Sequence[tuple[int, int]]
"""The largest rank of operands in each pass of a proof, and the steps of the pass."""

PASSES: Schedule = ((1, 13500), (2, 18500), (3, 4000), (4, 12000))
"""The passes of a proof of a rule."""

LEAST_RANKS = 2
"""The ranks for which a rule has to be proven at least: of one axis many a false rule is true."""

GROWTH = 3
"""How many times more instances have one axis more, where no fewer axes were seen."""


@dataclass
class Pass:
    """A pass over the instances with operands of at most so many `ranks`.

    `seen` counts the instances by the greatest rank of their operands.
    """

    ranks: int
    effort: Effort
    seen: Counter[int] = field(default_factory=Counter[int])

    def expected(self, taken: int, ranks: int) -> float:
        """The steps of a pass with more `ranks`, as this one has `taken` so many.

        The instances of each further rank are as many times more as those of the greatest rank are
        than those of the one before, and `GROWTH` times if it has none.
        """
        most = max(self.seen, default=0)
        last, before = self.seen[most], self.seen[most - 1]
        growth = last / before if before else GROWTH
        more = sum(last * growth**k for k in range(1, ranks - self.ranks + 1))
        return taken * (1 + more / max(1, self.seen.total()))


def passes(schedule: Schedule, least: int) -> Iterator[Pass]:
    """The passes of a schedule, until the caller breaks off one that takes too many steps.

    A pass has the instances of those before it, too.  One that is expected to take too many steps
    is left out.  Operands may have `least` axes, whatever the pass, as those of a rule about
    images.
    """
    last, taken = Pass(-1, Effort(0)), 0
    for ranks, steps in schedule:
        most = max(ranks, least)
        if most == last.ranks or last.expected(taken, most) > steps:
            continue
        last = Pass(most, Effort(steps))
        yield last
        taken = steps - last.effort.left
