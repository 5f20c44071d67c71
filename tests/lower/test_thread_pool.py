"""The pool of threads: every turn once, nobody blocked, nothing left behind."""

import ctypes
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from relax_egraph.build import build
from relax_egraph.lower.jit import compile_kernels, link
from relax_egraph.lower.runtime.pool_code import RUN
from relax_egraph.lower.runtime.threads import thread_count, thread_pool
from relax_egraph.script import parse
from relax_egraph.tir.expr import TirVar
from relax_egraph.tir.stmt import PrimFunc, Store
from relax_egraph.vm.machine import VirtualMachine
from tests.support.kernels import buffer, loop, m, n, sample
from tests.support.widths import WIDTHS

pytestmark = pytest.mark.skipif(not thread_pool(2), reason="kernels have no threads here")

DEAR = 1 << 50
"""Picoseconds that are worth every thread."""

_RUN_REGION = ctypes.CFUNCTYPE(None, *(ctypes.c_void_p,) * 3, *(ctypes.c_int64,) * 2)
_TASK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)

Turns = Callable[[int, int], object]


def run_region(pool: int, task: Turns, turns: int, cost: int = DEAR) -> None:
    """Run a region by `pool`, as a kernel would; `task` gets the bounds of each chunk."""

    def run(context: int, begin: int, end: int) -> None:
        task(begin, end)

    code = _TASK(run)
    address = ctypes.c_int64.from_address(pool + RUN).value
    _RUN_REGION(address)(pool, ctypes.cast(code, ctypes.c_void_p), None, turns, cost)


def chunks_of(pool: int, turns: int, cost: int = DEAR) -> list[tuple[int, int]]:
    """The chunks of a region, in order."""
    found: list[tuple[int, int]] = []
    run_region(pool, lambda begin, end: found.append((begin, end)), turns, cost)
    return sorted(found)


@pytest.mark.parametrize("threads", [2, 3, 8])
@pytest.mark.parametrize("turns", [0, 1, 2, 3, 31, 32, 33, 1000, (1 << 16) + 1, (1 << 40) + 3])
def test_each_turn_runs_once(threads: int, turns: int) -> None:
    chunks = chunks_of(thread_pool(threads), turns)

    ends = [0, *(end for _, end in chunks)]
    assert [begin for begin, _ in chunks] == ends[:-1]
    assert ends[-1] == turns
    assert len(chunks) <= max(1, 4 * threads)


def test_chunks_are_not_smaller_than_they_are_worth() -> None:
    pool = thread_pool(8)

    assert chunks_of(pool, 1000, cost=0) == [(0, 1000)]
    assert len(chunks_of(pool, 1000, cost=3_500_000)) == 3


def test_two_threads_work_at_once() -> None:
    meeting = threading.Barrier(2, timeout=60)

    run_region(thread_pool(2), lambda begin, end: meeting.wait(), 2)


def test_a_region_within_a_region_runs_on_its_own_thread() -> None:
    pool, inner = thread_pool(2), list[tuple[int, int, bool]]()

    def outer(begin: int, end: int) -> None:
        me = threading.get_ident()
        run_region(pool, lambda b, e: inner.append((b, e, threading.get_ident() == me)), turns=100)

    run_region(pool, outer, 8)

    assert inner == [(0, 100, True)] * 8


def test_who_finds_the_pool_busy_runs_alone() -> None:
    pool, entered, release = thread_pool(2), threading.Semaphore(0), threading.Event()

    def held(begin: int, end: int) -> None:
        entered.release()
        release.wait(60)

    with ThreadPoolExecutor(1) as others:
        other = others.submit(run_region, pool, held, 2)
        entered.acquire()

        chunks = chunks_of(pool, 1000)

        release.set()
        other.result()
    assert chunks == [(0, 1000)]


@pytest.mark.parametrize("threads", [2, 5])
def test_many_regions_in_a_row_lose_nothing(threads: int) -> None:
    kernel, x = scaled(threads), np.arange(64.0 * 2048, dtype=np.float32).reshape(64, 2048)
    out = np.empty_like(x)

    for k in range(3000):
        rows = 1 + k % 64
        out[:rows] = 0
        kernel(x[:rows], out[:rows], rows, 2048)
        assert out[rows - 1, -1] == x[rows - 1, -1] * 2
        assert (out[:rows, 0] == x[:rows, 0] * 2).all()


def test_idle_workers_sleep() -> None:
    run_region(thread_pool(3), lambda begin, end: None, 100)

    workers = [t for t in Path("/proc/self/task").iterdir() if t.name != str(os.getpid())]

    assert workers
    for worker in workers:
        while state(worker) != "S":
            pass


def state(thread: Path) -> str:
    return (thread / "stat").read_text().rsplit(")", 1)[1].split()[0]


# --- kernels and machines ---------------------------------------------------------------


@cache
def scaled(threads: int) -> Callable[..., None]:
    """``out = x * 2`` of a matrix, by rows."""
    i, j = TirVar("i"), TirVar("j")
    x, out = buffer("x", "float32", m, n), buffer("out", "float32", m, n)
    body = loop(j, n, Store(out, (i, j), x[i, j] * 2.0))
    compiled = compile_kernels({"f": PrimFunc((x, out), loop(i, m, body, "parallel"))})
    return link(compiled, thread_pool(threads))["f"]


MODULE = """
from relax_egraph.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @T.prim_func
    def shifted(x: T.Buffer(("n", 768), "float32"), out: T.Buffer(("n", 768), "float32")):
        for i in T.parallel(n):
            for j in range(768):
                out[i, j] = T.tanh(x[i, j]) + T.float32(1)

    @R.function
    def main(x: R.Tensor(("n", 768), "float32"), w: R.Tensor((768, 768), "float32")):
        n = T.int64()
        with R.dataflow():
            a = R.call_tir(cls.shifted, (x,), R.Tensor((n, 768), "float32"))
            b = R.matmul(a, w)
            c = R.nn.softmax(b, axis=-1)
            d = R.sum(R.nn.gelu(c + x), axis=0)
            R.output(d)
        return d
"""


def machine(threads: int, target: str = "native") -> VirtualMachine:
    return VirtualMachine(build(parse(MODULE), target=target), num_threads=threads)


def operands(rows: int) -> tuple[np.ndarray, np.ndarray]:
    return sample((rows, 768), "float32"), sample((768, 768), "float32", seed=1)


@pytest.mark.parametrize("target", WIDTHS)
def test_results_do_not_depend_on_the_number_of_threads(target: str) -> None:
    machines = [machine(threads, target) for threads in (1, 2, 3, 8)]
    for rows in (1, 7, 64, 300):
        results = [vm["main"](*operands(rows)) for vm in machines]

        for result in results[1:]:
            np.testing.assert_array_equal(result, results[0])


def test_machines_may_be_used_by_many_threads_at_once() -> None:
    shared, given = machine(2), operands(200)
    expected = machine(1)["main"](*given)

    def use(number: int) -> None:
        own = machine(3) if number % 2 else shared
        for _ in range(10):
            np.testing.assert_array_equal(own["main"](*given), expected)

    with ThreadPoolExecutor(8) as users:
        list(users.map(use, range(8)))


# --- processes ----------------------------------------------------------------------------


def run_script(body: str) -> None:
    """Run `body` in a process of its own, after imports; it has to end by itself, and well.

    A script that cannot run here prints what it needs, last, and ends.
    """
    text = f"from tests.lower.test_thread_pool import *\n{body}"
    root = Path(__file__).parents[2]
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", text]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=root)
    if done.returncode == 0 and (needs := re.findall(r"^needs .+", done.stdout, re.MULTILINE)):
        pytest.skip(needs[-1])
    assert (done.returncode, done.stderr) == (0, "")


def test_a_process_ends_while_its_workers_spin() -> None:
    run_script("run_region(thread_pool(8), lambda begin, end: None, 1000)")


def test_a_process_ends_while_a_region_runs() -> None:
    run_script("""
x = np.ones((64, 2048), np.float32)
def forever():
    while True:
        scaled(3)(x, np.empty_like(x), 64, 2048)
thread = threading.Thread(target=forever, daemon=True)
thread.start()
thread.join(0.2)
""")


MEET = """
def meet(pool):
    meeting = threading.Barrier(2, timeout=60)
    run_region(pool, lambda begin, end: meeting.wait(), 2)

pool = thread_pool(2)
meet(pool)
"""


def test_a_child_of_fork_has_workers_of_its_own() -> None:
    run_script(f"""{MEET}
child = os.fork()
if child == 0:
    both = threading.Barrier(2)
    other = threading.Thread(target=both.wait)
    other.start()
    threading.Thread(target=both.wait).start()
    other.join()
    os._exit(0)
if os.waitpid(child, 0)[1] != 0:
    print("needs children with two more threads, which qemu 7 ends")
    sys.exit()

child = os.fork()
if child == 0:
    meet(pool)
    meet(thread_pool(3))
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
meet(pool)
""")


def test_a_child_made_within_a_region_has_them_too() -> None:
    run_script(f"""{MEET}
entered, release = threading.Semaphore(0), threading.Event()
def held(begin, end):
    entered.release()
    release.wait(60)
other = threading.Thread(target=run_region, args=(pool, held, 2))
other.start()
entered.acquire()
child = os.fork()
if child == 0:
    meet(pool)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
release.set()
other.join()
""")


def test_processes_forked_by_multiprocessing_compute() -> None:
    run_script("""
import multiprocessing
x = np.ones((64, 2048), np.float32)
def total(number):
    out = np.empty_like(x)
    scaled(2)(x * number, out, 64, 2048)
    return out.sum()
total(1)
with multiprocessing.get_context("fork").Pool(2) as children:
    assert children.map(total, range(4)) == [2.0 * 64 * 2048 * k for k in range(4)]
""")


def test_where_no_thread_can_be_made_the_caller_does_all() -> None:
    run_script("""
import resource
pool, x = thread_pool(4), np.ones((64, 2048), np.float32)
kernel, out = scaled(4), np.empty_like(x)
size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
before = len(os.listdir("/proc/self/task"))
limits = size + (1 << 20), resource.RLIM_INFINITY
resource.setrlimit(resource.RLIMIT_AS, limits)
if resource.getrlimit(resource.RLIMIT_AS) != limits:
    print("needs a limit of memory, which qemu ignores")
    sys.exit()
kernel(x, out, 64, 2048)
assert len(os.listdir("/proc/self/task")) == before
assert (out == 2).all()
""")


def test_workers_take_no_signals() -> None:
    run_region(thread_pool(2), lambda begin, end: None, 100)

    masks = [
        next(line for line in (t / "status").read_text().splitlines() if "SigBlk" in line)
        for t in Path("/proc/self/task").iterdir()
        if t.name != str(os.getpid())
    ]

    blocked = [int(mask.split()[1], 16) >> 1 & 1 for mask in masks]  # SIGINT is number 2
    assert 1 in blocked


# --- how many -----------------------------------------------------------------------------


def test_the_environment_says_how_many_threads_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAX_EGRAPH_NUM_THREADS", "3")

    assert thread_count() == 3
    assert thread_count(5) == 5


def test_else_there_are_as_many_as_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RELAX_EGRAPH_NUM_THREADS", raising=False)

    assert thread_count() == len(os.sched_getaffinity(0))


@pytest.mark.parametrize("text", ["0", "-1", "many", "2.5", "1025"])
def test_a_wrong_number_in_the_environment_is_refused(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RELAX_EGRAPH_NUM_THREADS", text)

    with pytest.raises(ValueError) as caught:  # noqa: PT011  # the whole text is compared
        thread_count()

    assert str(caught.value) == (
        f"RELAX_EGRAPH_NUM_THREADS is {text!r}: needs a number of threads from 1 to 1024"
    )


def test_one_thread_is_no_pool() -> None:
    assert thread_pool(1) == 0
    assert thread_pool(2) == thread_pool(2) != thread_pool(3)
