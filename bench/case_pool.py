"""Runs many cases in processes of a pool, where a crash or a timeout is the outcome of its case."""

import multiprocessing
import signal
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

TIME_LIMIT = 120.0
"""The seconds that a case may take, if nothing else is said."""

_FORK = multiprocessing.get_context("fork")

Case = TypeVar("Case")
Outcome = TypeVar("Outcome")


def outcomes(
    cases: Sequence[Case],
    run: Callable[[Case], Outcome],
    lost: Callable[[Case, str], Outcome],
    workers: int,
    failed: Callable[[Outcome], bool],
    limit: float = TIME_LIMIT,
) -> list[Outcome]:
    """What `run` returns of each of `cases`, in order.

    `lost` is the outcome of a case whose process died, or that takes more than `limit` seconds: it
    gets the reason.  Standard error shows how many are done, and how many of those have `failed`.
    An interruption ends the run with the outcomes so far.
    """
    found: dict[int, Outcome] = {}
    with _progress(len(cases)) as ended, closing(_ends(cases, run, lost, workers, limit)) as ends:
        try:
            for number, outcome in ends:
                found[number] = outcome
                ended(failed(outcome))
        except KeyboardInterrupt:
            print(f"interrupted: {len(found)} of {len(cases)} cases ran", file=sys.stderr)
    return [found[number] for number in sorted(found)]


def _ends(
    cases: Sequence[Case],
    run: Callable[[Case], Outcome],
    lost: Callable[[Case, str], Outcome],
    workers: int,
    limit: float,
) -> Generator[tuple[int, Outcome]]:
    """The outcomes with the numbers of their cases, as they are ready."""
    waiting = list(reversed(range(len(cases))))
    running: list[_Worker[Case, Outcome]] = []
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                running.append(_Worker(cases, run, waiting.pop()))
            ready = wait([w.channel for w in running], 1.0)
            for worker in list(running):
                end = worker.end(worker.channel in ready, limit)
                if end is None:
                    continue
                result, reason = end
                number = worker.number
                yield number, lost(cases[number], reason) if reason else result
                if not waiting or not worker.give(waiting[-1]):
                    running.remove(worker)
                    worker.process.kill()
                else:
                    waiting.pop()
    finally:
        for worker in running:
            worker.process.kill()


_NOTED = 20
"""How many lines of progress there are where standard error is not a terminal."""


@contextmanager
def _progress(total: int) -> Generator[Callable[[bool], None]]:
    """Show a bar; the yielded function is called at the end of each case: whether it failed."""
    console = Console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    done = failures = 0
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        task = progress.add_task("0 failed", total=total)

        def ended(is_failure: bool) -> None:
            nonlocal done, failures
            done, failures = done + 1, failures + is_failure
            progress.update(task, advance=1, description=f"{failures} failed")
            if not console.is_terminal and done * _NOTED // total > (done - 1) * _NOTED // total:
                console.print(f"{done} of {total} cases, {failures} failed")

        yield ended


def _work(channel: Connection, cases: Sequence[Any], run: Callable[[Any], Any]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interruption is for the parent, which ends us
    while (number := channel.recv()) is not None:
        channel.send(run(cases[number]))


class _Worker(Generic[Case, Outcome]):
    """A process that runs cases one after the other."""

    def __init__(self, cases: Sequence[Case], run: Callable[[Case], Outcome], number: int) -> None:
        self.channel, theirs = _FORK.Pipe()
        self.process = _FORK.Process(target=_work, args=(theirs, cases, run), daemon=True)
        self.process.start()
        theirs.close()
        self.give(number)

    def give(self, number: int) -> bool:
        """Start case `number`; returns whether the process is alive."""
        self.number, self._since = number, time.monotonic()
        try:
            self.channel.send(number)
        except OSError:
            return False
        return self.process.is_alive()

    def end(self, is_ready: bool, limit: float) -> tuple[Any, str] | None:
        """The outcome of the case, or why there is none; ``None`` while it runs."""
        try:
            if is_ready:
                return self.channel.recv(), ""
        except (EOFError, OSError):
            return None, "the process died"
        if time.monotonic() - self._since <= limit:
            return None
        self.process.kill()
        self.process.join()
        return None, f"takes more than {limit:.0f} s"
