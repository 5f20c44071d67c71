"""Units of a check done in this process, or in several, which a rule may bring down.

egglog cannot be interrupted within an iteration, and aborts where there is no memory left.  What
comes to no end is done again rule by rule, so that only the one that does it is without a verdict.
"""

import os
import pickle
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from queue import SimpleQueue
from subprocess import PIPE, Popen, TimeoutExpired
from tempfile import TemporaryFile
from threading import Thread, Timer
from types import TracebackType
from typing import Any, BinaryIO, TypeAlias, cast

from relax_egraph.egraph.rulebook import reading_of
from relax_egraph.egraph.worker import OUT_OF_MEMORY
from relax_egraph.verify.verdict import Verdict
from relax_egraph.verify.work import Unit, Work

SECONDS = 120.0
"""What a unit may take."""

_START = 120.0
"""Seconds to start a process and to read a book in it."""

_GRACE = 5.0
"""Seconds that a process has to end when it has closed its output."""

_LAST_WORDS = 4096
"""Bytes of the messages of a process that are read when it is dead."""

_Found: TypeAlias = tuple[Verdict, ...] | BaseException


@dataclass(slots=True)
class Workers:
    """Does units of `work`: itself if of one of `processes`, or else it starts so many.

    On leaving the context, they end.
    """

    work: Work
    processes: int = 1
    _running: list["_Worker"] = field(default_factory=list["_Worker"])
    _idle: "SimpleQueue[_Worker]" = field(default_factory=SimpleQueue["_Worker"])
    _closed: bool = False

    def __enter__(self) -> "Workers":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closed = True
        while self._running:
            self._running.pop().kill()

    def done(self, units: Sequence[Unit]) -> Iterator[Verdict]:
        """The verdicts of `units`, as they are ready."""
        if self.processes <= 1:
            for unit in units:
                yield from self.work.do(unit)
            return
        todo, found = SimpleQueue[Unit | None](), SimpleQueue[_Found]()
        for unit in units:
            todo.put(unit)
        for _ in range(min(self.processes, len(units))):
            todo.put(None)
            Thread(target=self._serve, args=(todo, found), daemon=True).start()
        for _ in units:
            verdicts = found.get()
            if isinstance(verdicts, BaseException):
                raise verdicts
            yield from verdicts

    def _serve(self, todo: "SimpleQueue[Unit | None]", found: "SimpleQueue[_Found]") -> None:
        """Have units done by one process, and by another one if it dies, until there are none."""
        worker = None if self._idle.empty() else self._idle.get()
        try:
            while (unit := todo.get()) is not None and not self._closed:
                verdicts: list[Verdict] = []
                parts = [unit]
                while parts:
                    part = parts.pop(0)
                    worker = worker or self._start()
                    answer = worker.ask(part)
                    if isinstance(answer, tuple):
                        verdicts += answer
                        continue
                    worker = None
                    alone = len(self.work.rules_of(part)) == 1
                    verdicts += self.work.lost(part, answer) if alone else ()
                    parts[:0] = [] if alone else part.parts()
                found.put(tuple(verdicts))
            if worker is not None:
                self._idle.put(worker)
        except BaseException as problem:  # whatever it is, the one who waits raises it
            found.put(problem)

    def _start(self) -> "_Worker":
        worker = _Worker(self.work)
        self._running.append(worker)
        return worker


class _Worker:
    """A process that does units."""

    def __init__(self, work: Work) -> None:
        path = os.pathsep.join(p or os.getcwd() for p in sys.path)
        # The folder that the user is in is no place to import modules from.
        environment = {"PYTHONPATH": path, "PYTHONSAFEPATH": "1", "RUST_BACKTRACE": "0"}
        threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1"}
        self.said = cast(BinaryIO, TemporaryFile())  # noqa: SIM115  open as long as the process
        self.late = False
        self.process = Popen(
            [sys.executable, "-m", "relax_egraph.verify.worker"],
            stdin=PIPE,
            stdout=PIPE,
            stderr=self.said,
            env={**os.environ, **threads, **environment},
        )
        self.inbox = cast(BinaryIO, self.process.stdin)
        self.outbox = cast(BinaryIO, self.process.stdout)
        self.first = (work.book, reading_of(work.book), work.cases, work.trials, work.seed)
        self.ready = False

    def ask(self, unit: Unit) -> tuple[Verdict, ...] | str:
        """The verdicts, or how the process came to its end; raises what it raised."""
        try:
            if not self.ready:
                self._answer(self.first, _START)
                self.ready = True
            answer = self._answer(unit, SECONDS)
        except (EOFError, OSError, pickle.UnpicklingError):
            return self._end()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _answer(self, message: object, seconds: float) -> Any:
        """What is answered within so many `seconds`, at the end of which the process is killed."""
        timer = Timer(seconds, self._expire)
        timer.daemon = True
        timer.start()
        try:
            pickle.dump(message, self.inbox)
            self.inbox.flush()
            return pickle.load(self.outbox)
        finally:
            timer.cancel()

    def _expire(self) -> None:
        self.late = True
        self.process.kill()

    def _end(self) -> str:
        try:
            code = self.process.wait(_GRACE)
        except TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        self.said.seek(max(0, self.said.seek(0, os.SEEK_END) - _LAST_WORDS))
        said = self.said.read().decode("utf-8", "replace")
        self.close()
        if self.late:
            return f"its check did not end within {SECONDS:g} s"
        if code == OUT_OF_MEMORY or "memory allocation of" in said or "MemoryError" in said:
            return "its check ran out of memory"
        how = signal.Signals(-code).name if code < 0 else f"code {code}"
        return f"its check ended the process with {how}"

    def kill(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()
        self.close()

    def close(self) -> None:
        """Give back what is open; what waits to be written no one reads."""
        for stream in (self.inbox, self.outbox, self.said):
            with suppress(OSError):
                stream.close()
