"""Worker processes end with the process that started them, however and whenever that ends."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from subprocess import PIPE
from threading import Thread

import pytest

from relax_egraph.base.lifeline import TiedProcess

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL and /proc")

# It has sent a part of a message, of the length that the first bytes say.
STARTS = """
import sys, time
from relax_egraph.workers.process import Worker
worker = Worker()
print(worker.process.pid, flush=True)
worker.inbox.write(bytes([200, *[0] * 7]) + b"half of it")
time.sleep(1000)
"""

TIES = """
import os, subprocess, sys, time
from relax_egraph.base.lifeline import TiedProcess
process = TiedProcess(sys.argv[1], stdout=subprocess.PIPE)
process.stdout.readline()
print(process.pid, flush=True)
"""

HOLDS_THE_LOCK = "import re; print(1, flush=True); re.match('(a+)+$', 'a' * 50 + 'b')"
SLEEPS = "import time; print(1, flush=True); time.sleep(1000)"


def started(script: str, *args: str) -> tuple[subprocess.Popen[bytes], int]:
    """A process that runs `script`, and the number that it prints."""
    parent = subprocess.Popen([sys.executable, "-c", script, *args], stdout=PIPE)
    assert parent.stdout
    return parent, int(parent.stdout.readline())


def kill(parent: subprocess.Popen[bytes]) -> None:
    parent.kill()
    parent.communicate()


def seconds_to_end(pid: int) -> float:
    """How long it takes until there is no process `pid`, or only what its parent has not read."""
    begin = time.perf_counter()
    while time.perf_counter() < begin + 60:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            break
        if state == "Z":
            break
        time.sleep(0.005)
    else:
        os.kill(pid, signal.SIGKILL)
        pytest.fail(f"process {pid} outlives its parent")
    return time.perf_counter() - begin


@pytest.mark.parametrize("seconds", [0.0, 0.05, 0.4])
def test_a_worker_ends_with_a_parent_that_is_killed(seconds: float) -> None:
    parent, pid = started(STARTS)

    time.sleep(seconds)
    kill(parent)

    seconds_to_end(pid)


@pytest.mark.fuzz
def test_a_worker_ends_with_a_parent_that_is_killed_at_any_moment() -> None:
    drawn = random.Random(0)
    slowest = 0.0
    for _ in range(200):
        parent, pid = started(STARTS)
        time.sleep(drawn.uniform(0, 1.5))
        kill(parent)
        slowest = max(slowest, seconds_to_end(pid))

    print(f"the slowest took {slowest:.3f} s")


def test_a_process_that_holds_the_lock_of_the_interpreter_ends() -> None:
    parent, pid = started(f"{TIES}time.sleep(1000)", HOLDS_THE_LOCK)

    kill(parent)

    seconds_to_end(pid)


def test_a_process_ends_where_sigio_does_nothing_by_default() -> None:
    line, held = os.pipe()
    as_there = "import sys; sys.platform = 'darwin'; from relax_egraph.base.lifeline import hold"
    command = [sys.executable, "-c", f"{as_there}; hold({line}); {HOLDS_THE_LOCK}"]
    process = subprocess.Popen(command, stdout=PIPE, pass_fds=(line,))
    assert process.stdout
    process.stdout.readline()

    os.close(line)
    os.close(held)

    assert process.wait(60) == signal.SIGIO
    process.stdout.close()


def test_a_process_ends_while_a_fork_of_its_parent_lives() -> None:
    parent, pid = started(
        f"{TIES}fork = os.fork() or time.sleep(1000)\nprint(fork, flush=True)\ntime.sleep(1000)",
        SLEEPS,
    )
    assert parent.stdout
    fork = int(parent.stdout.readline())

    parent.kill()
    parent.wait()
    seconds_to_end(pid)

    os.kill(fork, signal.SIGKILL)  # it has lived
    parent.communicate()


def test_a_process_outlives_the_thread_that_started_it() -> None:
    processes: list[TiedProcess] = []
    echo = "while line := input(): print(line, flush=True)"

    def start() -> None:
        environment = {**os.environ, "PYTHONPATH": os.getcwd()}
        processes.append(TiedProcess(echo, stdin=PIPE, stdout=PIPE, env=environment))

    thread = Thread(target=start)
    thread.start()
    thread.join()
    (process,) = processes

    assert process.communicate(b"still here\n\n") == (b"still here\n", None)
    assert process.returncode == 0


def test_a_process_that_is_closed_leaves_nothing_open() -> None:
    before = set(os.listdir("/proc/self/fd"))

    with TiedProcess("pass"):
        pass

    assert set(os.listdir("/proc/self/fd")) == before
