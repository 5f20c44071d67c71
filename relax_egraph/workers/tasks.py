"""Tasks: questions with the calls that answer them, run by an executor and kept in a journal."""

from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from relax_egraph.base.journal import Journal, key_of
from relax_egraph.workers.executor import ExecutorOf
from relax_egraph.workers.process import Death, Limits

Call: TypeAlias = Callable[[], Any]
"""A call that pickles, its function by name, and that returns JSON."""


@dataclass(frozen=True, slots=True)
class Task:
    """A `question`, which is JSON and has all that its answer depends on, and what answers it.

    `subject` is what the task is of for those who ask; the answer does not depend on it.
    """

    question: Any
    call: Call
    subject: Any = None


def answers(
    tasks: Iterable[Task],
    executor: ExecutorOf | None,
    journal: Journal | None,
    limits: Limits,
    begin: Callable[[], object] | None = None,
) -> Generator[tuple[Task, Any | Death]]:
    """Each of `tasks` with its answer, or why its process died: as they are ready.

    Without an `executor` they run in this process, one after the other.  The `journal` has answers,
    and gets those that are new; deaths are not kept: another run may have more time or memory.
    """
    known = journal or Journal()

    def answered(task: Task, run: Callable[[Call], Any | Death]) -> tuple[Task, Any | Death]:
        if (answer := known.get(task.question)) is None:
            answer = run(task.call)
            if not isinstance(answer, Death):
                known.put(task.question, answer)
        return task, answer

    if executor is None:
        for task in tasks:
            yield answered(task, lambda call: call())
        return
    with executor(begin) as pool:
        run = partial(pool.run, limits=limits)
        yield from pool.map(lambda task: answered(task, run), tasks)


@dataclass(slots=True)
class Ahead:
    """Answers that are asked for one after the other, and computed ahead on cores that are idle.

    `run` runs a call, and returns ``None`` if it has no answer, which is not kept.  Answers are the
    same, and in the same order, as without computing ahead; what was computed in vain is in the
    journal, too.  One thread asks.
    """

    run: Callable[[Call], Any]
    journal: Journal
    cores: int
    _threads: ThreadPoolExecutor | None = None
    _running: dict[str, "Future[Any]"] = field(default_factory=dict[str, "Future[Any]"])

    def answer(self, task: Task) -> Any:
        """The answer to the question of `task`, or ``None``; raises what its call raises."""
        future = self._running.pop(key_of(task.question), None)
        return self._ask(task) if future is None else future.result()

    def expect(self, tasks: Iterable[Task]) -> None:
        """Begin with `tasks`, as far as cores are idle; one is left for what is asked for next."""
        idle = self.cores - 1 - sum(not future.done() for future in self._running.values())
        for task in tasks if idle > 0 else ():
            key = key_of(task.question)
            if key not in self._running and self.journal.get(task.question) is None:
                self._running[key] = self._begin(task)
                idle -= 1
            if idle <= 0:
                return

    def _begin(self, task: Task) -> "Future[Any]":
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self.cores)
        return self._threads.submit(copy_context().run, self._ask, task)

    def _ask(self, task: Task) -> Any:
        return self.journal.ask(task.question, lambda: self.run(task.call))

    def close(self) -> None:
        """Begin with nothing more; what runs ends with its executor."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
