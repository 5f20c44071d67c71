"""The worker process, as its parent sees it: started when needed, kept for the next request."""

import atexit
import os
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from subprocess import PIPE, Popen
from tempfile import TemporaryFile
from threading import Lock, Timer
from typing import BinaryIO, cast

from relax_egraph.egraph.course import Progress
from relax_egraph.egraph.forms import Source
from relax_egraph.egraph.report import StopReason
from relax_egraph.egraph.rulebook import reading_of
from relax_egraph.egraph.schedule import Budget
from relax_egraph.egraph.transfer import Answer, Names, Request, receive, send
from relax_egraph.egraph.worker import OUT_OF_MEMORY
from relax_egraph.errors import SaturationError

_OVERTIME = 2.0
"""A worker is killed after this many times the seconds that it was given."""

_GRACE = 5.0
"""Seconds beyond that, for what no budget bounds: loading, lowering and reading back."""

_START = 60.0
"""Seconds to start a worker and to declare the rules of a book in it."""

_LAST_WORDS = 4096
"""Bytes of the worker's messages that are read when it is dead."""


@dataclass(frozen=True, slots=True)
class Death:
    """Why a worker died, and what it told last, if it had begun."""

    stop: StopReason
    cause: str
    last: Progress | None

    def __str__(self) -> str:
        if self.last is None:
            return f"{self.cause} before it began"
        at = f" at rule {self.last.rule}" if self.last.rule else ""
        return f"{self.cause} in iteration {self.last.iteration} of phase {self.last.phase}{at}"


def ask(request: Request, names: Names) -> Answer | Exception | Death:
    """What the worker answers, or raises, or dies of; it is started if there is none.

    Requests of several threads wait for each other.  `names` are what `request` crosses with.
    """
    with _lock:
        known = bool(_kept)
        answer = _asked(request, names)
        if known and isinstance(answer, Death) and answer.last is None:
            answer = _asked(request, names)  # it was dead before, or dying
        return answer


def _asked(request: Request, names: Names) -> Answer | Exception | Death:
    if not _kept:
        _kept.append(_Worker())
    answer = None
    try:
        answer = _kept[0].ask(request, names)
        return answer
    finally:
        if answer is None or isinstance(answer, Death):  # interrupted, or dead
            close_worker()


def worker_pid() -> int | None:
    """The process that the next request goes to, if it runs."""
    return _kept[0].process.pid if _kept else None


def close_worker() -> None:
    """End the worker process, if there is one; the next request starts another."""
    while _kept:
        _kept.pop().close()


class _Worker:
    """A running worker, and the rule texts that it knows."""

    def __init__(self) -> None:
        path = os.pathsep.join(p or os.getcwd() for p in sys.path)
        # The folder that the user is in is no place to import modules from.
        environment = {"PYTHONPATH": path, "PYTHONSAFEPATH": "1", "RUST_BACKTRACE": "0"}
        self.owner = os.getpid()
        self.known: set[tuple[tuple[str, ...], tuple[Source, ...]]] = set()
        self.said = cast(BinaryIO, TemporaryFile())  # noqa: SIM115  open as long as the process
        try:
            self.process = Popen(
                [sys.executable, "-m", "relax_egraph.egraph.worker"],
                stdin=PIPE,
                stdout=PIPE,
                stderr=self.said,
                env={**os.environ, **environment},
            )
        except OSError as problem:
            raise SaturationError(f"no worker process can be started: {problem}") from None
        self.inbox = cast(BinaryIO, self.process.stdin)
        self.outbox = cast(BinaryIO, self.process.stdout)
        self.late = False

    def ask(self, request: Request, names: Names) -> Answer | Exception | Death:
        texts = (request.book.families, request.book.user)
        if texts not in self.known:
            request = replace(request, reading=reading_of(request.book))
        last: Progress | None = None
        timer = self._timer(_START)
        try:
            send(self.inbox, request, names)
            while isinstance(message := receive(self.outbox, names), Progress):
                if last is None:
                    timer.cancel()
                    timer = self._timer(request.budget.seconds * _OVERTIME + _GRACE)
                last = message
            self.known.add(texts)
            return message
        except (EOFError, OSError):
            return self._death(last, request.budget)
        finally:
            timer.cancel()

    def _timer(self, seconds: float) -> Timer:
        timer = Timer(seconds, self._kill)
        timer.daemon = True
        timer.start()
        return timer

    def _kill(self) -> None:
        self.late = True
        self.process.kill()

    def _death(self, last: Progress | None, budget: Budget) -> Death:
        code = self.process.wait()
        self.said.seek(max(0, self.said.seek(0, os.SEEK_END) - _LAST_WORDS))
        said = self.said.read().decode("utf-8", "replace")
        if self.late:
            allowed = budget.seconds * _OVERTIME + _GRACE if last else _START
            return Death(StopReason.TIME, f"was ended after {allowed:g} s", last)
        if code == OUT_OF_MEMORY or "memory allocation of" in said or "MemoryError" in said:
            size = f"{budget.memory / (1 << 30):.2f} GiB"
            return Death(StopReason.MEMORY, f"ran out of its {size} of memory", last)
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with code {code}"
        return Death(StopReason.CRASH, f"ended {how}", last)

    def close(self) -> None:
        with suppress(OSError):
            self.inbox.close()
        if self.owner == os.getpid():
            self.process.kill()
            self.process.wait()
        else:
            self.process.returncode = 0  # another's child: nothing to wait for
        self.outbox.close()
        self.said.close()


_lock = Lock()
_kept: list[_Worker] = []


def _forget() -> None:
    """In a fork the worker is the parent's; the lock may be held by a thread that is not there."""
    global _lock
    _lock = Lock()
    close_worker()


atexit.register(close_worker)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
