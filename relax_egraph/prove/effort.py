"""A bound on the work of one proof, counted in steps, so that a verdict depends on no clock."""

from dataclasses import dataclass


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

RANKS = ((4, 12000), (3, 4000), (2, 16000))
"""The largest rank of operands, and the steps of a proof; with too few steps, the rank is less.

Operands of a rule about images have the rank of these, where that is greater.
"""
