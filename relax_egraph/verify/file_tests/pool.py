"""File tests in processes of their own, which rules may bring down.

egglog cannot be interrupted: a test that does not end is ended with its process.
"""

import os
import pickle
import signal
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from queue import Empty, SimpleQueue
from subprocess import DEVNULL, PIPE, Popen
from threading import Timer
from typing import Any, cast

from relax_egraph.egraph.worker import OUT_OF_MEMORY
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
                    worker.kill()
                raise
    finally:
        for worker in workers:
            worker.kill()
    return tuple(outcomes[number] for number in range(len(tests)))


class _Worker:
    """A process that runs tests, started when one is there for it, and again when it died."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.process: Popen[bytes] | None = None
        self.late = False

    def run(self, test: FileTest) -> Outcome:
        """What becomes of `test`."""
        try:
            if self.process is None:
                self.process = _start()
                self._answer(_START)
            pickle.dump(test, self.inbox)
            self.inbox.flush()
            return self._answer(self.seconds)
        except (EOFError, OSError, pickle.UnpicklingError):
            return Outcome(test, (Failure(test.line, "a run that ends", (self._death(),)),))

    @property
    def inbox(self) -> Any:
        """Where the process reads."""
        return self.process and self.process.stdin

    def _answer(self, seconds: float) -> Any:
        """What the process says within so many `seconds`, after which it is ended."""
        process = self.process
        assert process is not None
        self.late = False
        timer = Timer(seconds, self._end, (process,))
        timer.daemon = True
        timer.start()
        try:
            return pickle.load(cast(Any, process.stdout))
        finally:
            timer.cancel()

    def _end(self, process: "Popen[bytes]") -> None:
        self.late = True
        process.kill()

    def _death(self) -> str:
        """Why the process is no more."""
        process = self.process
        assert process is not None
        code = process.wait()
        self.kill()
        if self.late:
            return f"it did not end within {self.seconds:g} s"
        if code in (OUT_OF_MEMORY, -signal.SIGABRT):
            return f"it ran out of its {MEMORY / (1 << 30):g} GiB of memory"
        return f"it ended {f'by {signal.Signals(-code).name}' if code < 0 else f'with code {code}'}"

    def kill(self) -> None:
        """End the process, if there is one."""
        if self.process is None:
            return
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            with suppress(OSError):
                stream.close() if stream else None
        self.process = None


def _start() -> "Popen[bytes]":
    path = os.pathsep.join(p or os.getcwd() for p in sys.path)
    # The folder that the user is in is no place to import modules from.
    environment = {"PYTHONPATH": path, "PYTHONSAFEPATH": "1", "RUST_BACKTRACE": "0"}
    threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    return Popen(
        [sys.executable, "-m", "relax_egraph.verify.file_tests.worker"],
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        env={**os.environ, **threads, **environment},
    )
