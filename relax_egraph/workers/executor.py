"""What runs calls within limits: worker processes of this machine, or those of a cluster."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextvars import copy_context
from typing import Self, TypeAlias, TypeVar

from relax_egraph.workers.process import Death, Limits

T = TypeVar("T")
A = TypeVar("A")


class Executor(ABC):
    """Runs calls in processes, at most `size` at a time; on leaving the context, they end.

    Of the calls that it takes so many run at once as it has `cores`; others wait there.
    """

    size: int
    cores: int

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def run(self, call: Callable[[], T], limits: Limits) -> T | Death:
        """What `Worker.run` returns or raises, in a process that is idle; threads wait for one.

        Raises ``CancelledError`` if the executor is closed.
        """

    @abstractmethod
    def close(self) -> None:
        """End the processes; what they run is cancelled."""

    def map(self, function: Callable[[A], T], items: Iterable[A]) -> Iterator[T]:
        """The values of `function`, which calls `run`, as they are ready: a thread for each call.

        The threads have the context variables of the caller.  If one raises, or the caller is
        interrupted, the executor is closed.
        """
        with ThreadPoolExecutor(self.size) as threads:
            futures = [threads.submit(copy_context().run, function, item) for item in items]
            try:
                for future in as_completed(futures):
                    yield future.result()
            except BaseException:
                threads.shutdown(wait=False, cancel_futures=True)
                self.close()
                raise


ExecutorOf: TypeAlias = Callable[[Callable[[], object] | None], Executor]
"""Makes an executor whose processes begin with a call, which imports what the others need."""
