"""A bound on the work of one proof, counted in steps, so that a verdict depends on no clock."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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

PASSES: Schedule = ((2, 16000), (3, 4000), (4, 12000))
"""The passes of a proof of a rule."""


@dataclass
class Pass:
    """A pass over the instances with operands of at most so many `ranks`; `is_empty` if none is."""

    ranks: int
    effort: Effort
    is_empty: bool = False


def passes(schedule: Schedule, least: int) -> Iterator[Pass]:
    """The passes of a schedule, until the caller breaks off one that takes too many steps.

    A pass has the instances of those before it, too.  One that is expected to take too many steps
    is left out: their number grows as it did before.  Operands may have `least` axes, whatever the
    pass, as those of a rule about images.
    """
    most, spent, growth = -1, 0, 1.0
    for ranks, steps in schedule:
        if max(ranks, least) == most or spent * growth > steps:
            continue
        most = max(ranks, least)
        one = Pass(most, Effort(steps))
        yield one
        taken = steps - one.effort.left
        growth = taken / spent if spent else 1.0
        spent = 0 if one.is_empty else taken
