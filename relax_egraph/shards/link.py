"""What devices are joined by, and the seconds of collectives over it."""

from dataclasses import dataclass

from relax_egraph.base.parameters import POSITIVE, SECONDS, check_fields

_LINK = {"bandwidth": POSITIVE, "latency": SECONDS}


@dataclass(frozen=True, slots=True)
class Link:
    """A ring of devices: bytes per second from each one to the next, and seconds for a message.

    Collectives are those of a ring: in ``parts - 1`` steps every device passes on a part of the
    bytes, once to gather, and once more before that to reduce.  Raises ``ValueError`` for
    impossible values.
    """

    bandwidth: float
    latency: float

    def __post_init__(self) -> None:
        check_fields(self, _LINK)

    def all_gather(self, nbytes: float, parts: int) -> float:
        """Seconds until every device has all `nbytes`, of which each had a part."""
        return (parts - 1) * (self.latency + nbytes / parts / self.bandwidth)

    def all_reduce(self, nbytes: float, parts: int) -> float:
        """Seconds until every device has the sum of `parts` tensors of `nbytes`."""
        return 2 * self.all_gather(nbytes, parts)
