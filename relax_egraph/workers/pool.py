"""Several workers; and one that is kept for the whole life of this process."""

import atexit
import os
from collections.abc import Callable
from concurrent.futures import CancelledError
from queue import SimpleQueue
from typing import TypeVar
from weakref import WeakSet

from relax_egraph.workers.executor import Executor
from relax_egraph.workers.process import Death, Limits, Worker

T = TypeVar("T")


class Pool(Executor):
    """At most `size` workers, started when they are needed; on leaving the context, they end.

    Each of them begins with the call `begin`, which imports what the calls need.
    """

    START = 60.0
    """Seconds to start a worker, which ends with `begin`."""

    def __init__(self, size: int, begin: Callable[[], object] | None = None) -> None:
        self.size = self.cores = size
        self._begin = begin
        self._closed = False
        self._workers = WeakSet[Worker]()
        self._idle = SimpleQueue[Worker | None]()
        for _ in range(size):
            self._idle.put(None)

    def run(self, call: Callable[[], T], limits: Limits) -> T | Death:
        """What `Worker.run` returns or raises, in a worker that is idle; threads wait for one.

        Raises ``CancelledError`` if the pool is closed.
        """
        worker = self._idle.get()
        try:
            if worker and not worker.alive:
                worker.close()
                worker = None
            if worker is None:
                worker = self._new_worker()
                if self._begin:
                    begun = worker.run(self._begin, Limits(self.START))
                    if isinstance(begun, Death):
                        return begun
            return worker.run(call, limits)
        except ValueError:
            if self._closed:
                raise CancelledError from None
            raise
        finally:
            self._idle.put(worker)

    def _new_worker(self) -> Worker:
        worker = Worker()
        self._workers.add(worker)
        if self._closed:
            worker.close()
        return worker

    def close(self) -> None:
        """End the workers; what they run is cancelled."""
        self._closed = True
        for worker in tuple(self._workers):
            worker.close()


_kept = [Pool(1)]


def run_in_worker(call: Callable[[], T], limits: Limits) -> T | Death:
    """What `call` returns in the worker that is kept; calls of several threads wait for each other.

    Returns and raises what `Pool.run` does.
    """
    return _kept[0].run(call, limits)


def close_worker() -> None:
    """End the worker that is kept; the next call starts another."""
    _kept[0].close()
    _kept[0] = Pool(1)


atexit.register(close_worker)
if hasattr(os, "register_at_fork"):  # the worker of the parent is not the child's
    os.register_at_fork(after_in_child=close_worker)
