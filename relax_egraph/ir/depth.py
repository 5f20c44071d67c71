"""The recursion limit for deeply nested programs."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock

from relax_egraph.base.forks import free_in_forks
from relax_egraph.errors import RelaxEgraphError

FRAMES = 10_000
"""The nested calls of Python that are allowed: some hundred nested conditionals."""


@contextmanager
def deep(refusal: type[RelaxEgraphError], message: str) -> Generator[None]:
    """Allow `FRAMES` nested Python calls inside; raise ``refusal(message)`` beyond them."""
    _LIMIT.enter()
    try:
        yield
    except RecursionError:
        raise refusal(message) from None
    finally:
        _LIMIT.leave()


@dataclass(slots=True)
class _Limit:
    """Python's recursion limit, for the whole process: the last thread to leave restores it."""

    inside: int = 0
    before: int = 0
    lock: Lock = field(default_factory=lambda: free_in_forks(Lock()))

    def enter(self) -> None:
        with self.lock:
            if self.inside == 0:
                self.before = sys.getrecursionlimit()
                sys.setrecursionlimit(max(self.before, FRAMES))
            self.inside += 1

    def leave(self) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                sys.setrecursionlimit(self.before)


_LIMIT = _Limit()
