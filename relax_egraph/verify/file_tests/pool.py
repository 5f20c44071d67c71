"""File tests in processes of their own, which rules may bring down.

egglog cannot be interrupted: a test that does not end is ended with its process.
"""

import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from queue import Empty, SimpleQueue

from relax_egraph.egraph.workers.child import ONE_THREAD, Child, End
from relax_egraph.verify.file_tests.cases import Failure, FileTest, Outcome
from relax_egraph.verify.file_tests.worker import MEMORY

_START = 60.0
"""Seconds to start a process."""


def run_tests(
    tests: Sequence[FileTest],
    *,
    seconds: float = 60.0,
    processes: int = 1,
    told: Callable[[Outcome], object] = lambda _: None,
) -> tuple[Outcome, ...]:
    """The outcomes of `tests`, in order; `told` of each when it is there.

    A test that takes more than so many `seconds`, or all memory, has failed.
    """
    waiting = SimpleQueue[tuple[int, FileTest]]()
    for numbered in enumerate(tests):
        waiting.put(numbered)
    outcomes: dict[int, Outcome] = {}
    workers = [_Worker(seconds) for _ in range(min(processes, len(tests)))]

    def work(worker: _Worker) -> None:
        with suppress(Empty):
            while True:
                number, test = waiting.get_nowait()
                outcomes[number] = worker.run(test)
                told(outcomes[number])

    try:
        with ThreadPoolExecutor(max(1, len(workers))) as threads:
            try:
                for done in [threads.submit(work, worker) for worker in workers]:
                    done.result()
            except BaseException:  # an interrupt: what runs is not waited for
                with suppress(Empty):
                    while True:
                        waiting.get_nowait()
                for worker in workers:
                    worker.close()
                raise
    finally:
        for worker in workers:
            worker.close()
    return tuple(outcomes[number] for number in range(len(tests)))


class _Worker:
    """Runs tests in a process, started when one is there for it, and again when it died."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.child: Child | None = None

    def run(self, test: FileTest) -> Outcome:
        """What becomes of `test`."""
        child = self.child
        try:
            if child is None:
                child = self.child = Child("relax_egraph.verify.file_tests.worker", ONE_THREAD)
                with child.within(_START):
                    pickle.load(child.outbox)  # it is ready
            with child.within(self.seconds):
                pickle.dump(test, child.inbox)
                child.inbox.flush()
                return pickle.load(child.outbox)
        except (EOFError, OSError, pickle.UnpicklingError) as problem:
            why = self._said(child.ended()) if child else f"no process can be started: {problem}"
            self.close()
            return Outcome(test, (Failure(test.line, "a run that ends", (why,)),))

    def _said(self, end: End) -> str:
        match end.cause:
            case "late":
                return f"it did not end within {self.seconds:g} s"
            case "memory":
                return f"it ran out of its {MEMORY / (1 << 30):g} GiB of memory"
            case "code":
                return f"it ended {end}"

    def close(self) -> None:
        """End the process, if there is one."""
        if self.child is not None:
            self.child.close()
            self.child = None
