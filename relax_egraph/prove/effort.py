"""A bound on the work of one proof, counted in steps, so that a verdict depends on no clock."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set
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

PASSES: Schedule = ((2, 21000), (3, 4000), (4, 16000))
"""The passes of a proof of a rule."""

PROBE = 1000
"""The steps of a pass that is expected to need more than it has."""


Named: TypeAlias = tuple[str, str]
"""A dtype of what has a name: an operand, or an attribute."""


@dataclass
class Seen:
    """The dtypes that have few axes: those left out of more axes, and those of an instance."""

    left_out: set[Named] = field(default_factory=set[Named])
    had: set[Named] = field(default_factory=set[Named])

    @property
    def missing(self) -> Mapping[str, Set[str]]:
        """Those that were left out, and are in no instance of few axes, by name."""
        missing: dict[str, set[str]] = {}
        for name, dtype in sorted(self.left_out - self.had):
            missing.setdefault(name, set()).add(dtype)
        return missing


@dataclass
class Pass:
    """A pass over the instances with operands of up to so many `ranks`, and of one `above` a rank.

    The passes before it had the others.  It `is_empty` if there is none.  The dtypes of all passes
    are `seen`, by the facts of instances.  It may be asked for those `only` in which what has a
    name has one of some dtypes, which may take its `steps` once more.
    """

    ranks: int
    effort: Effort
    above: int = -1
    steps: int = 0
    is_empty: bool = False
    seen: dict[Hashable, Seen] = field(default_factory=dict[Hashable, Seen])
    only: tuple[str, Set[str]] | None = None

    def seen_of(self, facts: Iterable[Hashable]) -> Seen:
        """The dtypes of the instances of `facts`."""
        return self.seen.setdefault(tuple(facts), Seen())


def passes(schedule: Schedule, least: int) -> Iterator[Pass]:
    """The passes of a schedule, until the caller breaks off one that takes too many steps.

    Their steps grow as they did before, by two at first: of one that is expected to take too many,
    only the first are made, as what is false of more axes is often false of the first instances.
    Operands may have `least` axes, whatever the pass, as those of a rule about images.
    """
    most, spent, growth = -1, 0, 2.0
    seen: dict[Hashable, Seen] = {}
    for ranks, most_steps in schedule:
        if max(ranks, least) == most:
            continue
        steps = most_steps if spent * growth <= most_steps else min(PROBE, most_steps)
        one = Pass(max(ranks, least), Effort(steps), most, steps, seen=seen)
        most = one.ranks
        yield one
        taken = steps - one.effort.left
        growth = taken / spent if spent else 2.0
        spent = 0 if one.is_empty else taken
