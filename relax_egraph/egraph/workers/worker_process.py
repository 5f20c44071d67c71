"""The worker process, as its parent sees it: started when needed, kept for the next request."""

import atexit
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from threading import Lock
from typing import TypeVar

from relax_egraph.egraph.rulebook.book import Reading, reading_of
from relax_egraph.egraph.rulebook.forms import Source
from relax_egraph.egraph.saturation.course import Progress
from relax_egraph.egraph.saturation.report import StopReason
from relax_egraph.egraph.saturation.schedule import Budget
from relax_egraph.egraph.workers.child import Child, End
from relax_egraph.egraph.workers.transfer import (
    Answer,
    Names,
    ReadingRequest,
    Request,
    receive,
    send,
)
from relax_egraph.errors import SaturationError

A = TypeVar("A")

_OVERTIME = 2.0
"""A worker is killed after this many times the seconds that it was given."""

_GRACE = 5.0
"""Seconds beyond that, for what no budget bounds: loading, lowering and reading back."""

_START = 60.0
"""Seconds to start a worker and to declare the rules of a book in it."""


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
        return _from_worker(lambda worker: worker.ask(request, names))


def read_in_worker(families: tuple[str, ...], user: tuple[Source, ...]) -> Reading:
    """What the worker reads of texts of rules; raises `RuleError`."""
    request = ReadingRequest(families, user)
    with _lock:
        answer = _from_worker(lambda worker: worker.read(request))
    if isinstance(answer, Exception):
        raise answer
    if isinstance(answer, Death):
        raise SaturationError(f"the rules are not read: the worker process {answer}")
    return answer


def _from_worker(question: "Callable[[_Worker], A | Death]") -> A | Death:
    """The answer to `question`; it is put again if the worker was dead before, or dying."""
    known = bool(_kept)
    answer = _asked(question)
    if known and isinstance(answer, Death) and answer.last is None:
        return _asked(question)
    return answer


def _asked(question: "Callable[[_Worker], A | Death]") -> A | Death:
    if not _kept:
        _kept.append(_Worker())
    answer = None
    try:
        answer = question(_kept[0])
        return answer
    finally:
        if answer is None or isinstance(answer, Death):  # interrupted, or dead
            close_worker()


def worker_pid() -> int | None:
    """The process that the next request goes to, if it runs."""
    return _kept[0].child.process.pid if _kept else None


def close_worker() -> None:
    """End the worker process, if there is one; the next request starts another."""
    while _kept:
        _kept.pop().child.close()


class _Worker:
    """A running worker, and the rule texts that it knows."""

    def __init__(self) -> None:
        self.known: set[tuple[tuple[str, ...], tuple[Source, ...]]] = set()
        try:
            self.child = Child("relax_egraph.egraph.workers.worker")
        except OSError as problem:
            raise SaturationError(f"no worker process can be started: {problem}") from None

    def ask(self, request: Request, names: Names) -> Answer | Exception | Death:
        texts = (request.book.families, request.book.user)
        if texts not in self.known:
            request = replace(request, reading=reading_of(request.book))
        last: Progress | None = None
        try:
            with self.child.within(_START):
                send(self.child.inbox, request, names)
                message = receive(self.child.outbox, names)
            with self.child.within(_allowed(request.budget)):
                while isinstance(message, Progress):
                    last = message
                    message = receive(self.child.outbox, names)
            self.known.add(texts)
            return message
        except (EOFError, OSError):
            return _death(self.child.ended(), last, request.budget)

    def read(self, request: ReadingRequest) -> Reading | Exception | Death:
        try:
            with self.child.within(_START):
                send(self.child.inbox, request, Names())
                return receive(self.child.outbox, Names())
        except (EOFError, OSError):
            return _death(self.child.ended(), None, Budget())


def _allowed(budget: Budget) -> float:
    return budget.seconds * _OVERTIME + _GRACE


def _death(end: End, last: Progress | None, budget: Budget) -> Death:
    match end.cause:
        case "late":
            seconds = _allowed(budget) if last else _START
            return Death(StopReason.TIME, f"was ended after {seconds:g} s", last)
        case "memory":
            size = f"{budget.memory / (1 << 30):.2f} GiB"
            return Death(StopReason.MEMORY, f"ran out of its {size} of memory", last)
        case "code":
            return Death(StopReason.CRASH, f"ended {end}", last)


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
