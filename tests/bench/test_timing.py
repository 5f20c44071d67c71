"""Runs take turns, and each is timed by a clock that suits it."""

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count, groupby

from bench.timing import LEAST_ROUNDS, clock_of, in_turn, least, samples


def test_runs_take_turns() -> None:
    log: list[str] = []
    runs = {name: lambda name=name: log.append(name) for name in "ab"}

    found = samples(runs, seconds=0)

    assert [name for name, _ in groupby(log)][-2 * LEAST_ROUNDS :] == ["a", "b"] * LEAST_ROUNDS
    assert all(len(times) >= 2 * LEAST_ROUNDS for times in found.values())


def test_the_least_is_of_one_call_by_the_clock_that_is_given() -> None:
    ticks = count()

    found = least({"slow": lambda: time.sleep(1e-3)}, seconds=0, clock=lambda: float(next(ticks)))

    assert found == {"slow": 1.0}


def test_what_waits_for_others_is_timed_by_the_wall() -> None:
    assert clock_of(lambda: time.sleep(1e-3)) is time.perf_counter


def test_what_calls_another_thread_at_times_is_timed_by_the_wall() -> None:
    work = partial(sum, range(100_000))
    with ThreadPoolExecutor(1) as other:
        run = in_turn([work, lambda: other.submit(work).result()])

        assert clock_of(run) is time.perf_counter


def test_runs_in_turn_come_round() -> None:
    log: list[int] = []
    run = in_turn([lambda k=k: log.append(k) for k in range(3)])

    for _ in range(5):
        run()

    assert log == [0, 1, 2, 0, 1]
