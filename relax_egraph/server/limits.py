"""The limits of a server."""

from dataclasses import dataclass

from relax_egraph.base.parameters import COUNT, NOT_NEGATIVE, POSITIVE, check_fields, optional


@dataclass(frozen=True, slots=True)
class Limits:
    """What a server takes on; a request beyond a limit is refused with a sentence.

    Raises ``TypeError`` or ``ValueError`` for a limit that is none.
    """

    max_body: int = 32 << 20
    """Bytes of a request; above it 413."""

    max_queue: int = 512
    """Requests that are read, wait or run at once; above it 503."""

    timeout: float = 30.0
    """Seconds from the first byte of a request to its answer: then 408 if it was still being
    sent, else 504."""

    max_wait: float = 0.001
    """The most seconds that a request waits for others to be joined with it."""

    max_batch: int | None = None
    """The most rows that are joined; by default the last upper end of the model's ranges, or 64
    if it has none.  1 joins nothing."""

    def __post_init__(self) -> None:
        check_fields(self, KINDS)


KINDS = {
    "max_body": COUNT,
    "max_queue": COUNT,
    "timeout": POSITIVE,
    "max_wait": NOT_NEGATIVE,
    "max_batch": optional(COUNT),
}
"""What each limit takes."""
