"""Workers run calls within limits; what becomes of one that they bring down; pools of them."""

import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import CancelledError
from functools import partial
from io import BytesIO
from typing import NoReturn

import pytest

from relax_egraph.errors import RelaxEgraphError, RuleError, Span
from relax_egraph.workers.main import memory_is_limited, tell
from relax_egraph.workers.pipe import receive, send
from relax_egraph.workers.pool import Pool, close_worker, run_in_worker
from relax_egraph.workers.process import Death, Limits

MINUTE = Limits(60)


def holds_the_lock() -> None:
    """Does not end in this century, and lets no other thread run."""
    re.match("(a+)+$", "a" * 50 + "b")


def tells_then(last: object, what: "partial[object]") -> None:
    tell("first")
    tell(last)
    what()


def takes_all_memory() -> int:
    return len(bytes(1 << 33))


class Foreign(Exception):
    """It does not unpickle."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__("of two")
        self.both = one, two


def raises_foreign() -> NoReturn:
    raise Foreign(1, 2)


def raises(error: Exception) -> NoReturn:
    raise error


kept_here = list[int]()


def prints_and_sums(*numbers: int) -> int:
    print("this is no message")
    kept_here.extend(numbers)
    return sum(kept_here)


def test_a_worker_runs_calls_and_keeps_what_they_leave() -> None:
    with Pool(1) as pool:
        assert pool.run(partial(prints_and_sums, 1, 2), MINUTE) == 3
        assert pool.run(partial(prints_and_sums, 4), MINUTE) == 7

    assert kept_here == []


def test_a_call_that_takes_too_long_is_ended_and_the_next_runs() -> None:
    limits = Limits(0.3, start=60)
    with Pool(1) as pool:
        first = pool.run(os.getpid, MINUTE)
        death = pool.run(partial(tells_then, "second", partial(holds_the_lock)), limits)
        second = pool.run(os.getpid, MINUTE)

    assert death == Death("time", "by SIGKILL", limits, "second")
    assert str(death) == "was ended after 0.3 s"
    assert first != second


def test_a_call_that_tells_nothing_in_time_is_ended() -> None:
    with Pool(1) as pool:
        death = pool.run(holds_the_lock, Limits(600, start=2))

    assert str(death) == "was ended after 2 s"


def test_a_call_that_computes_too_long_is_ended_and_one_that_waits_is_not() -> None:
    limits = Limits(600, processor=0.3)
    with Pool(1) as pool:
        pool.run(partial(time.sleep, 0.6), limits)
        death = pool.run(holds_the_lock, limits)
        pool.run(partial(re.match, "(a+)+$", "a" * 24 + "b"), Limits(600))

    assert death == Death("time", "by SIGPROF", limits)
    assert str(death) == "was ended after 0.3 s of processor time"


def test_memory_is_bounded_call_by_call() -> None:
    with Pool(1) as pool:
        death = pool.run(takes_all_memory, Limits(60, memory=1 << 30))
        limited = pool.run(memory_is_limited, Limits(60, memory=1 << 30))
        free = pool.run(memory_is_limited, MINUTE)

    assert str(death) == "ran out of its 1.00 GiB of memory"
    assert (limited, free) == (True, memory_is_limited())


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (partial(os._exit, 3), "ended with code 3"),
        (partial(os.abort), "ended by SIGABRT"),
        (partial(os.kill, 0, signal.SIGSEGV), "ended by SIGSEGV"),
        (partial(sys.exit, 5), "ended with code 5"),
    ],
)
def test_the_cause_of_a_crash_is_said(call: "partial[object]", said: str) -> None:
    with Pool(1) as pool:
        death = pool.run(partial(tells_then, 1, partial(os.setsid)), MINUTE)
        assert death is None
        death = pool.run(partial(tells_then, 1, call), MINUTE)

    assert isinstance(death, Death)
    assert (str(death), death.last) == (said, 1)


def test_what_a_call_raises_is_raised_here_and_the_worker_goes_on() -> None:
    rule_error = RuleError(Span("my.egg", 1, 2), "wrong", "(oops)", "note")
    with Pool(1) as pool:
        first = pool.run(os.getpid, MINUTE)
        with pytest.raises(RuleError) as ours:
            pool.run(partial(raises, rule_error), MINUTE)
        with pytest.raises(KeyError) as other:
            pool.run(partial(raises, KeyError("key")), MINUTE)
        with pytest.raises(RelaxEgraphError, match="Foreign: of two"):
            pool.run(raises_foreign, MINUTE)
        assert pool.run(os.getpid, MINUTE) == first

    assert (str(ours.value), ours.value.span) == (str(rule_error), rule_error.span)
    assert other.value.__notes__[0].startswith("in the worker process:\nTraceback")


def test_items_are_shared_among_the_workers() -> None:
    with Pool(2, partial(prints_and_sums, 100)) as pool:
        sums = pool.map(lambda n: pool.run(partial(prints_and_sums, n), MINUTE), [0] * 20)
        pids = set(pool.map(lambda _: pool.run(os.getpid, MINUTE), range(20)))

        assert list(sums) == [100] * 20
        assert 1 <= len(pids) <= 2


def test_a_pool_that_an_exception_leaves_waits_for_no_call() -> None:
    begin = time.monotonic()
    pool = Pool(2)

    def run(number: int) -> object:
        if number == 1:
            time.sleep(1)
            raise KeyboardInterrupt
        return pool.run(partial(time.sleep, 600), Limits(600))

    with pytest.raises(KeyboardInterrupt):
        list(pool.map(run, range(8)))

    with pytest.raises(CancelledError):
        pool.run(os.getpid, MINUTE)
    assert time.monotonic() - begin < 300


def test_no_process_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")

    with Pool(1) as pool, pytest.raises(RelaxEgraphError, match="no worker process can be started"):
        pool.run(os.getpid, MINUTE)


def test_the_kept_worker_is_replaced_when_it_was_killed_or_closed() -> None:
    first = run_in_worker(os.getpid, MINUTE)
    assert isinstance(first, int)
    os.kill(first, signal.SIGKILL)
    os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
    second = run_in_worker(os.getpid, MINUTE)
    close_worker()
    third = run_in_worker(os.getpid, MINUTE)

    assert len({first, second, third}) == 3


FORKS = """
import os, signal, time
from functools import partial
from threading import Thread
from relax_egraph.workers.pool import run_in_worker
from relax_egraph.workers.process import Limits
pid = run_in_worker(os.getpid, Limits(60))
thread = Thread(target=lambda: print(run_in_worker(partial(time.sleep, 3), Limits(60)), flush=True))
thread.start()
time.sleep(1)
child = os.fork()
if child == 0:
    signal.alarm(60)
    os._exit(0 if run_in_worker(os.getpid, Limits(60)) != pid else 1)
assert os.waitpid(child, 0)[1] == 0
thread.join()
assert run_in_worker(os.getpid, Limits(60)) == pid
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_has_a_worker_of_its_own_while_a_thread_waits_for_the_parents() -> None:
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKS]

    done = subprocess.run(command, capture_output=True, text=True)

    assert (done.returncode, done.stdout, done.stderr) == (0, "None\n", "")


def test_a_message_that_breaks_off_is_the_end() -> None:
    whole = BytesIO()
    send(whole, b"a message")

    assert receive(BytesIO(whole.getvalue())) == b"a message"
    for length in range(len(whole.getvalue())):
        with pytest.raises(EOFError):
            receive(BytesIO(whole.getvalue()[:length]))
