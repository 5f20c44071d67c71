"""How long extraction searches, and with what it is content."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Effort:
    """A search goes on for `seconds` of processor time, or until what it has is close enough.

    That is: proven to cost at most the share `gap` too much.  What closes the gap in little time is
    tried nevertheless.
    """

    seconds: float = 2.0
    gap: float = 0.01

    def covers(self, other: "Effort") -> bool:
        """Whether a search with this effort finds what one with `other` would find."""
        return self.seconds >= other.seconds and self.gap <= other.gap


DEFAULT = Effort()
"""The effort if no time limit is said."""

THOROUGH = Effort(10.0, 0.0)
"""The effort for the optimum."""


def effort_of(time_limit: float | None) -> Effort:
    """The search for the optimum within `time_limit` seconds; the default effort for ``None``."""
    return DEFAULT if time_limit is None else Effort(time_limit, 0.0)
