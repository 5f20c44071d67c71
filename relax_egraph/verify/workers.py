"""Units of a check done in this process, or in several, which a rule may bring down.

egglog cannot be interrupted within an iteration, and aborts where there is no memory left.  What
comes to no end is done again rule by rule, so that only the one that does it is without a verdict.
"""

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Thread
from types import TracebackType
from typing import Any, TypeAlias

from relax_egraph.egraph.rulebook.book import reading_of
from relax_egraph.egraph.workers.child import ONE_THREAD, Child, End
from relax_egraph.egraph.workers.home import egglog_works
from relax_egraph.verify.verdict import Verdict
from relax_egraph.verify.work import Unit, Work

SECONDS = 120.0
"""What a unit may take."""

_START = 120.0
"""Seconds to start a process and to read a book in it."""

_Found: TypeAlias = tuple[Verdict, ...] | BaseException


@dataclass(slots=True)
class Workers:
    """Does units of `work`: itself if of one of `processes`, or else it starts so many.

    Where egglog does not work in this process, it starts one.

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
            self._running.pop().child.close()

    def done(self, units: Sequence[Unit]) -> Iterator[Verdict]:
        """The verdicts of `units`, as they are ready."""
        if self.processes <= 1 and egglog_works():
            for unit in units:
                yield from self.work.do(unit)
            return
        todo, found = SimpleQueue[Unit | None](), SimpleQueue[_Found]()
        for unit in units:
            todo.put(unit)
        for _ in range(min(max(1, self.processes), len(units))):
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
        self.child = Child("relax_egraph.verify.worker", ONE_THREAD)
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
            end = self.child.ended()
            self.child.close()
            return _said(end)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _answer(self, message: object, seconds: float) -> Any:
        """What is answered within so many `seconds`, at the end of which the process is killed."""
        with self.child.within(seconds):
            pickle.dump(message, self.child.inbox)
            self.child.inbox.flush()
            return pickle.load(self.child.outbox)


def _said(end: End) -> str:
    match end.cause:
        case "late":
            return f"its check did not end within {SECONDS:g} s"
        case "memory":
            return "its check ran out of memory"
        case "code":
            return f"its check ended the process with {end.what}"
