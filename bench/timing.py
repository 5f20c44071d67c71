"""The minimal time of each of several runs, which take turns on one machine.

A run on the calling thread alone is timed by the clock of that thread, which stops while other
threads run; a run on several threads is timed by the wall clock.
"""

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import cycle, repeat
from typing import TypeAlias, TypeVar

Run: TypeAlias = Callable[[], object]
Clock: TypeAlias = Callable[[], float]

Name = TypeVar("Name", bound=Hashable)

BATCH = 200e-6
"""Seconds of consecutive calls that are timed together, so that reading clocks is negligible."""

TURN = 10e-3
"""Seconds of a turn, whose first calls find caches cold."""

LEAST_ROUNDS = 3

_TRIES = 5
_REST, _MOST_RESTS = 5e-3, 50
_ALONE, _AWAKE = 0.95, 0.2
"""The minimal share of a run's thread in the work of the process, and in its own elapsed time, if
it waits for no other thread."""


def least(
    runs: Mapping[Name, Run], seconds: float, clock: Clock | None = None
) -> dict[Name, float]:
    """Seconds of one call of each run, the minimum of the `samples`."""
    return {name: min(times) for name, times in samples(runs, seconds, clock).items()}


def samples(
    runs: Mapping[Name, Run], seconds: float, clock: Clock | None = None
) -> dict[Name, list[float]]:
    """Times of one call of each run, taking turns until each had about `seconds`.

    They are measured by `clock`, by default by the one that suits the run.
    """
    calls = {name: _calls_in(BATCH, run) for name, run in runs.items()}
    clocks = {name: clock or clock_of(run, calls[name]) for name, run in runs.items()}
    awake = {name for name, run in runs.items() if _stays_awake(run)}
    times: dict[Name, list[float]] = {name: [] for name in runs}
    end, rounds = time.perf_counter() + seconds * len(runs), 0
    while rounds < LEAST_ROUNDS or time.perf_counter() < end:
        for name, run in runs.items():
            until, batches = time.perf_counter() + TURN, 0
            while batches < 2 or time.perf_counter() < until:
                times[name].append(_seconds(run, calls[name], clocks[name]))
                batches += 1
            if name in awake:
                _settle()
        rounds += 1
    return times


def clock_of(run: Run, calls: int = 1) -> Clock:
    """The thread clock if `run`, called `calls` times, uses no other thread; else the wall clock.

    On a shared machine a run may be suspended, but then no other thread of this process works for
    it.  Some systems use another thread at some calls only.
    """
    _settle()
    alone, awake = 1.0, 0.0
    for _ in range(_TRIES):
        wall, all_threads, busy = time.perf_counter(), time.process_time(), time.thread_time()
        for _ in repeat(None, calls):
            run()
        busy = time.thread_time() - busy
        alone = min(alone, busy / max(time.process_time() - all_threads, 1e-9))
        awake = max(awake, busy / (time.perf_counter() - wall))
    return time.thread_time if alone > _ALONE and awake > _AWAKE else time.perf_counter


def in_turn(runs: Sequence[Run]) -> Run:
    """A run that calls the next of `runs` each time."""
    if len(runs) == 1:
        return runs[0]
    following = cycle(runs)
    return lambda: next(following)()


def _stays_awake(run: Run) -> bool:
    """Whether threads continue to work after `run`: they spin while they wait for more."""
    run()
    start = time.process_time()
    time.sleep(_REST)
    busy = time.process_time() - start > _REST / 10
    _settle()
    return busy


def _settle() -> None:
    """Wait until no thread of this process works, for a limited time."""
    for _ in range(_MOST_RESTS):
        start = time.process_time()
        time.sleep(_REST)
        if time.process_time() - start < _REST / 10:
            return


def _seconds(run: Run, calls: int, clock: Clock) -> float:
    start = clock()
    for _ in repeat(None, calls):
        run()
    return (clock() - start) / calls


def _calls_in(seconds: float, run: Run) -> int:
    fastest = min(_seconds(run, 1, time.perf_counter) for _ in range(_TRIES))
    return max(1, round(seconds / fastest))
