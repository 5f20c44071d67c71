"""Children of ``fork`` work, whatever their parent had done, and whatever its threads did."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from threading import Event, Lock, RLock, Thread

import pytest

import relax_egraph
from relax_egraph.base import forks

ROOT = Path(relax_egraph.__file__).parent

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

CHILD = """
import multiprocessing, os, signal, sys
import numpy as np
import relax_egraph as rx
from relax_egraph.errors import SaturationError

TEXT = '''
@R.function
def main(x: R.Tensor((2048, {k}), "float32"), y: R.Tensor((2048, {k}), "float32")):
    with R.dataflow():
        lv0 = R.multiply(x, y)
        gv0 = R.add(lv0, y)
        R.output(gv0)
    return gv0
'''
RULE = '(rewrite (R.exp (R.log x)) x :name "mine")'
children = []

def run(module, k):
    call = rx.VirtualMachine(rx.build(module), num_threads=4)["main"]
    x = np.ones((2048, k), np.float32)
    assert (call(x, x) == 2).all()
    return call

def work(stage, rules=()):
    signal.alarm(300)
    k = 32 + len(children)
    best = rx.optimize(rx.parse(TEXT.format(k=k)), rules=rules)
    assert "ewise_fma" in best.script()
    run(best, k)

def explain(stage):
    try:
        rx.explain(rx.parse(TEXT.format(k=5)), proof=True)
        sys.exit(1)
    except SaturationError as error:
        assert str(error) == (
            "egglog does not work in this process: it was forked from one that had loaded egglog, "
            "whose thread is not here; optimize, build and run work here; prove and check rules "
            'in a process that is started by "spawn", or forked before the first optimize'
        ), error

def fork(stage, work=work, *args):
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        work(stage, *args)
        sys.exit(0)  # what the interpreter undoes at its end is part of it
    children.append((stage, child))

def wait():
    for stage, child in children:
        assert os.waitpid(child, 0)[1] == 0, stage
"""


def run_script(script: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", CHILD + script],
        env={**os.environ, "RELAX_EGRAPH_CACHE": ""},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_children_optimize_and_run_whatever_their_parent_has_done_or_say_what_to_do() -> None:
    run_script("""
fork("after import")
module = rx.parse(TEXT.format(k=4))
fork("after parse")
best = rx.optimize(module)
fork("after optimize")
fork("a proof, for which egglog is needed here", explain)
call = run(best, 4)
fork("after a run with threads", work, [RULE])
x = np.ones((2048, 4), np.float32)
fork("only runs", lambda stage: call(x, x))
process = multiprocessing.get_context("fork").Process(target=work, args=("multiprocessing",))
process.start()
process.join()
assert process.exitcode == 0
wait()
assert (call(x, x) == 2).all()
""")


def test_the_solver_has_threads_of_its_own() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", SOLVER],
        capture_output=True,
        text=True,
    )

    assert (done.returncode, done.stderr) == (0, "")


SOLVER = """
import os, signal, sys, threading
import highspy
import relax_egraph.extract.mip
def solve():
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 4)
    solver.addVar(0, 1)
    solver.changeColIntegrality(0, highspy.HighsVarType.kInteger)
    assert solver.run() == highspy.HighsStatus.kOk
solve()
child = os.fork()
if child == 0:
    signal.alarm(60)
    thread = threading.Thread(target=solve)
    thread.start()
    thread.join()
    solve()
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
solve()
"""


@pytest.mark.parametrize("new_lock", [Lock, RLock])
def test_a_lock_is_free_in_a_child_whoever_held_it(new_lock: type[forks.Lock]) -> None:
    lock, held, tries, status = forks.free_in_forks(new_lock()), Event(), Event(), list[int]()

    def hold() -> None:
        lock.acquire()
        held.set()
        tries.wait()
        time.sleep(0.05)
        lock.release()

    def fork() -> None:
        tries.set()
        child = os.fork()
        if child == 0:
            os._exit(0 if lock.acquire(blocking=False) else 1)
        status.append(os.waitpid(child, 0)[1])

    holder, forker = Thread(target=hold), Thread(target=fork)
    holder.start()
    held.wait()
    forker.start()
    holder.join()
    forker.join()

    assert status == [0]
    assert lock.acquire(blocking=False)
    lock.release()  # a later fork waits for it as long as anything refers to it


def test_locks_that_are_taken_in_each_other_are_no_trap() -> None:
    first, second = forks.free_in_forks(RLock()), forks.free_in_forks(RLock())
    over = Event()

    def nest() -> None:
        while not over.is_set():
            with first, second:
                pass
            with second, first:
                pass

    nesting = Thread(target=nest)
    nesting.start()
    statuses: list[int] = []
    for _ in range(20):
        child = os.fork()
        if child == 0:
            with first, second:
                os._exit(0)
        statuses.append(os.waitpid(child, 0)[1])
    over.set()
    nesting.join()

    assert statuses == [0] * 20


def test_a_child_knows_what_its_parents_had_loaded() -> None:
    child = os.fork()
    if child == 0:
        known = forks.is_inherited("relax_egraph.base.forks") and not forks.is_inherited(
            "no.module"
        )
        os._exit(0 if known else 1)

    assert os.waitpid(child, 0)[1] == 0
    assert not forks.is_inherited("relax_egraph.base.forks")


def test_every_lock_is_free_in_children() -> None:
    made = re.compile(r"(?<!free_in_forks\()(?<!asyncio\.)\b(R?Lock|Condition|Semaphore)\(\)")

    files = {file.resolve() for file in ROOT.rglob("*.py")}
    files |= {
        f.resolve() for link in ROOT.iterdir() if link.is_symlink() for f in link.rglob("*.py")
    }
    strays = [
        f"{file}:{number}"
        for file in files - {Path(forks.__file__).resolve()}
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1)
        if made.search(line)
    ]

    assert strays == []
