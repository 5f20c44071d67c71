"""Calls of a run in workers: none outlives the run, and one that takes too much has no answer."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from time import monotonic
from types import TracebackType
from typing import TypeVar

from relax_egraph.base.journal import Journal
from relax_egraph.workers.executor import ExecutorOf
from relax_egraph.workers.pool import Pool
from relax_egraph.workers.process import Death, Limits
from relax_egraph.workers.tasks import Ahead

T = TypeVar("T")

_SECONDS, _MEMORY = 60.0, 3 << 30
"""The most time, and memory in bytes, of one call."""


def _begin() -> None:
    """Import what calls need, before their time begins."""
    import_module("relax_egraph.discover.status")


class OutOfTime(Exception):
    """The time of the run is over."""


class Bounded:
    """Workers for calls, until `seconds` from now: those of an executor, by default one.

    `ahead` answers tasks from the `journal`, or by calls.
    """

    def __init__(
        self, seconds: float, executor: ExecutorOf | None = None, journal: Journal | None = None
    ) -> None:
        self._end = monotonic() + seconds
        self._pool = (executor or partial(Pool, 1))(_begin)
        self.ahead = Ahead(self.run, journal or Journal(), self._pool.cores)

    def __enter__(self) -> "Bounded":
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.ahead.close()
        self._pool.close()

    def check(self) -> None:
        """Raise `OutOfTime` if the time is over."""
        if monotonic() >= self._end:
            raise OutOfTime

    def run(self, call: Callable[[], T]) -> T | None:
        """What `call` returns, or ``None`` if it takes too much; raises `OutOfTime` at the end."""
        self.check()
        allowed = min(_SECONDS, self._end - monotonic())
        answer = self._pool.run(call, Limits(allowed, _MEMORY))
        if not isinstance(answer, Death):
            return answer
        self.check()
        return None
