"""Measures several runs in turns, so that disturbances affect them alike."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

_BATCH = 200e-6
"""The seconds of a batch of calls, long enough to hide the cost of reading the clock."""

_TURN = 10e-3
"""The seconds of a turn, long enough for caches to warm up."""

_MOST_CALLS = 1000
_LEAST_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Times:
    """The seconds of one call: the least and the median."""

    least: float
    median: float


def in_turns(runs: Mapping[str, Callable[[], Any]], seconds: float) -> dict[str, Times]:
    """The times of each run, which gets about `seconds`."""
    calls = {name: _calls(run) for name, run in runs.items()}
    times_by_name: dict[str, list[float]] = {name: [] for name in runs}
    end, rounds = time.perf_counter() + seconds * len(runs), 0
    while rounds < _LEAST_ROUNDS or time.perf_counter() < end:
        for name, run in runs.items():
            until = time.perf_counter() + _TURN
            while True:
                times_by_name[name].append(_seconds(run, calls[name]))
                if time.perf_counter() >= until:
                    break
        rounds += 1
    return {name: Times(min(times), median(times)) for name, times in times_by_name.items()}


def _calls(run: Callable[[], Any]) -> int:
    """The number of calls that take about `_BATCH`."""
    run()
    return max(1, min(_MOST_CALLS, round(_BATCH / max(_seconds(run, 1), 1e-9))))


def _seconds(run: Callable[[], Any], calls: int) -> float:
    begin = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - begin) / calls
