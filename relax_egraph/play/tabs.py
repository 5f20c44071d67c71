"""The questions of several tabs, in worker processes with limits; a newer edit ends older ones."""

from collections import OrderedDict
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Condition, Lock, RLock, Thread
from typing import Generic, TypeVar

from relax_egraph.base.forks import free_in_forks
from relax_egraph.errors import RelaxEgraphError
from relax_egraph.workers.process import Death, Limits, Worker

T = TypeVar("T")

_START = 60.0
"""Seconds for a worker to begin."""

_GRACE = 0.3
"""Seconds that a question of an older edit has to end; a worker that begins takes longer."""

_KEPT_TABS = 200


class Outdated(Exception):
    """There is a newer edit in the tab."""


@dataclass(eq=False)
class _Tab:
    """A tab: its newest edit, and the worker that answers it; its questions take turns."""

    edit: int = -1
    worker: Worker | None = None
    turn: Lock = field(default_factory=Lock)


class Tabs(Generic[T]):
    """Runs questions in at most `size` workers, each of which begins with the call `begin`.

    One more is kept in readiness.
    """

    def __init__(self, size: int, limits: Limits, begin: Callable[[], object]) -> None:
        self.limits = limits
        self._begin = begin
        self._size = size
        self._tabs: OrderedDict[str, _Tab] = OrderedDict()
        self._idle: list[tuple[str, Worker]] = []
        self._busy = 0
        self._change = Condition(free_in_forks(RLock()))
        self._warming = False
        self._closed = False

    def ask(self, name: str, edit: int, call: Callable[[], T]) -> T | Death:
        """What `call` returns in a worker, for tab `name`; raises what it raises.

        Questions of one edit take turns.  Raises `Outdated` if there is an `edit` with a larger
        number, now or before it ends, and `RelaxEgraphError` if no worker begins.
        """
        tab = self._newest(name, edit)
        with tab.turn:
            self._check(tab, edit)
            with self._worker(name) as worker:
                with self._change:
                    self._check(tab, edit)
                    tab.worker = worker
                try:
                    answer = worker.run(call, self.limits)
                except ValueError:
                    if not worker.alive:  # it was closed
                        raise Outdated from None
                    raise
                finally:
                    with self._change:
                        tab.worker = None
                        self._change.notify_all()
            self._check(tab, edit)
            return answer

    def _check(self, tab: _Tab, edit: int) -> None:
        """Raise `Outdated` if there is a newer edit in `tab`."""
        if edit < tab.edit or self._closed:
            raise Outdated

    def warm(self) -> None:
        """Start a worker in the background if none is idle: the next question waits for it."""
        with self._change:
            if self._idle or self._warming or self._closed:
                return
            self._warming = True
        Thread(target=self._warm, daemon=True).start()

    def close(self) -> None:
        """End all workers."""
        with self._change:
            self._closed = True
            running = [tab.worker for tab in self._tabs.values() if tab.worker]
            for worker in (*running, *(worker for _, worker in self._idle)):
                worker.close()
            self._idle.clear()
            self._change.notify_all()

    def _newest(self, name: str, edit: int) -> _Tab:
        """The tab; a question of an older edit that runs in it is ended."""
        with self._change:
            tab = self._tabs.setdefault(name, _Tab())
            self._tabs.move_to_end(name)
            while len(self._tabs) > _KEPT_TABS:
                self._tabs.popitem(last=False)
            if edit < tab.edit:
                raise Outdated
            older = tab.worker if edit > tab.edit else None
            tab.edit = edit
            if older is None:
                return tab
            self._change.wait_for(lambda: tab.worker is not older, _GRACE)
            if tab.worker is older:
                older.close()
            return tab

    @contextmanager
    def _worker(self, name: str) -> Generator[Worker]:
        """A worker that nobody else uses, of the same tab if one is idle: it remembers."""
        with self._change:
            self._change.wait_for(lambda: self._busy < self._size or self._closed)
            if self._closed:
                raise Outdated
            self._busy += 1
            self._change.wait_for(lambda: self._idle or not self._warming or self._closed)
            self._idle = [(tab, worker) for tab, worker in self._idle if worker.alive]
            found = next((pair for pair in self._idle if pair[0] == name), None)
            if found is None and self._idle:
                found = self._idle[0]
            if found is not None:
                self._idle.remove(found)
        worker = None
        try:
            worker = found[1] if found else self._begun()
            self.warm()  # a spare: where this one is ended, the next question does not wait
            yield worker
        finally:
            with self._change:
                self._busy -= 1
                if worker is not None and worker.alive and not self._closed:
                    self._idle.append((name, worker))
                    for _, surplus in self._idle[: -self._size]:
                        surplus.close()
                    del self._idle[: -self._size]
                elif worker is not None:
                    worker.close()
                self._change.notify_all()

    def _begun(self) -> Worker:
        worker = Worker()
        begun = worker.run(self._begin, Limits(_START))
        if isinstance(begun, Death):
            raise RelaxEgraphError(f"a worker process {begun} as it began")
        return worker

    def _warm(self) -> None:
        worker = None
        with suppress(RelaxEgraphError, ValueError):  # the next question says so
            worker = self._begun()
        with self._change:
            self._warming = False
            if worker is not None and self._closed:
                worker.close()
            elif worker is not None:
                self._idle.append(("", worker))
            self._change.notify_all()
