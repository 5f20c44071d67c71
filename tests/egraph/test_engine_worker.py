"""A worker process runs rules of users: with the same result, and without its dangers."""

import os
import pickle
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from relax_egraph.egraph.engine import Budget, RuleBook, StopReason, saturate
from relax_egraph.egraph.node import leaf_node, opaque_node
from relax_egraph.egraph.saturation import isolated
from relax_egraph.egraph.saturation.transfer import Answer, Names, Request, Rows
from relax_egraph.egraph.view import EClass, View
from relax_egraph.errors import RuleError, SaturationError, Span
from relax_egraph.ir import assumptions
from relax_egraph.ir.expr import Constant, Var
from relax_egraph.ir.struct_info import TensorStructInfo, tensor
from relax_egraph.workers import process
from relax_egraph.workers.pool import run_in_worker
from relax_egraph.workers.process import Limits
from tests.support.hand_made import leaf, operation, ops, root, view

RULE = '(rewrite (R.log (R.exp x)) x :name "my-log-of-exp")'
UNSOUND = '(rewrite (R.exp x) (R.sum x (vec-of 0) false) :name "exp-is-sum")'
FAMILIES = ("canon", "fma", "fusion")
BOOK = RuleBook.default([RULE], families=FAMILIES)
PROGRAM = view(leaf(0), leaf(1), operation("exp", 0), operation("log", 2), operation("add", 3, 1))

EXPLODES = """
    (rule ((= a (R.add b c)) (= d (R.add e f)) (= g (R.add h i)) (= j (R.add k l))
           (= m (R.add n o)))
          ((union (R.add a (R.add d (R.add g (R.add j m))))
                  (R.add m (R.add j (R.add g (R.add d a))))))
      :name "every-five-sums")
"""
ENDLESS = """
    (rule ((= a (rank-of (R.add b c))) (= d (rank-of (R.add e f))) (= g (rank-of (R.add h i)))
           (= j (rank-of (R.add k l))) (= m (rank-of (R.add n o))) (= p (rank-of (R.add q r)))
           (= 99 (+ a (+ d (+ g (+ j (+ m p)))))))
          ((union b c))
      :name "every-six-sums")
"""
"""It takes all six sums that there are, and finds none that it wants."""


def chain(length: int) -> View:
    """A sum of leaves, from the left."""
    sums = [
        operation("add", 0, 1),
        *(operation("add", length - 2 + k, k) for k in range(2, length)),
    ]
    return view(*(leaf(k) for k in range(length)), *sums)


def worker_pid() -> int:
    """The process of the worker that is kept."""
    pid = run_in_worker(os.getpid, Limits(60))
    assert isinstance(pid, int)
    return pid


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolated, "_GRACE", 1.0)


def test_the_result_is_that_of_this_process() -> None:
    here, there = (saturate(PROGRAM, BOOK, isolate=apart) for apart in (False, True))

    assert (there.view, there.became) == (here.view, here.became)
    assert there.report.matches == here.report.matches
    assert there.report.notes == ()


def test_rules_of_users_run_in_the_worker_and_the_book_alone_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a worker")

    monkeypatch.setattr(isolated, "run_in_worker", refuse)

    assert saturate(PROGRAM).report.saturated
    with pytest.raises(AssertionError, match="a worker"):
        saturate(PROGRAM, BOOK)


def test_the_worker_is_kept_for_the_next_run() -> None:
    saturate(PROGRAM, BOOK)
    first = worker_pid()

    saturate(PROGRAM, RuleBook.default([RULE, FMA], families=FAMILIES))

    assert worker_pid() == first


FMA = '(rewrite (R.add (R.multiply a b) c) (R.ewise_fma a b c) :name "mine")'


def test_weights_do_not_cross() -> None:
    weight = Constant(np.zeros((1000, 1000), np.float32))
    classes = {0: EClass("tensor", (leaf_node(0),), tensor((1000, 1000), "float32"), True)}
    program = View(
        {**classes, 1: operation("exp", 0, info=classes[0].struct_info)}, (1,), (weight,)
    )

    sent = Names().dumps((Rows.of(program), weight))
    result = saturate(program, BOOK).view

    assert len(sent) < 2000
    assert result.leaves is program.leaves


def test_variables_that_name_shapes_come_back_as_themselves() -> None:
    shape = Var("s")
    unknown = TensorStructInfo(shape, "float32", 2)
    opaque = EClass("tensor", (opaque_node(0, ()),), unknown)
    program = View({0: opaque, 1: operation("exp", 0, info=unknown)}, (1,))

    saturated = saturate(program, BOOK)

    assert root(saturated).struct_info.shape is shape


def test_a_view_crosses_unchanged() -> None:
    names = Names()
    saturated = saturate(PROGRAM).view

    rows: Rows = names.loads(names.dumps(Rows.of(saturated)))

    assert rows.view(saturated.leaves, saturated.opaque) == saturated


def test_assumptions_hold_in_the_worker() -> None:
    guarded = """
        (rewrite (R.nn.relu x) (R.abs x)
          :when ((= s (shape-of x)) (= n (vec-get s 0)) (dim-ge n (DimSym "3"))) :name "guarded")
    """
    book = RuleBook.default([guarded], families=[])
    program = view(leaf(0), operation("nn.relu", 0))

    plain = saturate(program, book)
    with assumptions.assuming(assumptions.parse(["n >= 3"])):
        assumed = saturate(program, book)

    assert "abs" not in ops(root(plain))
    assert "abs" in ops(root(assumed))


@pytest.mark.parametrize("apart", [False, True])
def test_an_unsound_rule_gets_the_same_message(apart: bool) -> None:
    with pytest.raises(SaturationError) as error:
        saturate(PROGRAM, RuleBook.default([UNSOUND], families=FAMILIES), isolate=apart)

    assert str(error.value) == (
        "rule exp-is-sum (<rules>:1:1) is unsound: it equates values of shapes (n, 4) and (4,)"
    )


def test_other_exceptions_of_the_worker_are_raised_with_its_traceback() -> None:
    program = view(leaf(0), operation("sum", 0, axis=None, keepdims=False))

    with pytest.raises(ValueError, match=r"R\.sum: attribute axis is None") as error:
        saturate(program, BOOK)

    assert "in the worker process:\nTraceback" in error.value.__notes__[0]


def test_errors_with_a_place_cross_as_they_are() -> None:
    problem = RuleError(Span("my.egg", 1, 2), "wrong", "(oops)", "note")

    crossed = pickle.loads(pickle.dumps(problem))

    assert (type(crossed), str(crossed), crossed.span) == (RuleError, str(problem), problem.span)


def test_a_worker_that_was_killed_is_replaced() -> None:
    saturate(PROGRAM, BOOK)
    killed = worker_pid()
    os.kill(killed, signal.SIGKILL)

    saturated = saturate(PROGRAM, BOOK)

    assert worker_pid() != killed
    assert saturated.report.saturated


def test_a_rule_that_takes_all_memory_in_one_iteration_is_banned_and_the_run_goes_on() -> None:
    book = RuleBook.default([EXPLODES, RULE], families=FAMILIES)
    program = View({**chain(30).classes, 90: operation("exp", 58), 91: operation("log", 90)}, (91,))

    saturated = saturate(program, book, Budget(memory=768 << 20))

    (ban,) = saturated.report.bans
    assert (ban.rule, ban.phase, ban.iteration) == ("every-five-sums", "rewrite", 1)
    assert saturated.became[58] == saturated.became[91]  # the other rule has run
    assert saturated.report.notes == (
        "the worker process ran out of its 0.75 GiB of memory in iteration 1 of phase rewrite",
    )


@pytest.mark.usefixtures("impatient")
def test_a_rule_that_does_not_end_is_banned_and_the_run_goes_on() -> None:
    book = RuleBook.default([ENDLESS], families=FAMILIES)

    report = saturate(chain(60), book, Budget(seconds=0.5)).report

    assert [ban.rule for ban in report.bans] == ["every-six-sums"]
    assert report.notes == (
        "the worker process was ended after 2 s in iteration 1 of phase rewrite",
    )


def test_a_block_for_which_no_memory_is_enough_comes_back_with_its_kernels() -> None:
    saturated = saturate(PROGRAM, BOOK, Budget(memory=1 << 20))

    assert saturated.report.phases[0].stop is StopReason.MEMORY
    assert [p.name for p in saturated.report.phases] == ["rewrite", "lower", "fusion"]
    assert ops(root(saturated)) == {"add", "store"}
    assert saturated.view.leaves is PROGRAM.leaves
    (note,) = saturated.report.notes
    assert note.startswith(
        "this block is not rewritten: the worker process ran out of its 0.00 GiB"
    )
    assert str(saturated.report).endswith(note)


def test_runs_of_several_threads_wait_for_each_other() -> None:
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(saturate, [PROGRAM] * 8, [BOOK] * 8))

    assert all(r.view == results[0].view for r in results)


def test_a_fork_has_a_worker_of_its_own() -> None:
    script = f"""
import os
from relax_egraph.egraph.engine import RuleBook, saturate
from tests.egraph.test_engine_worker import worker_pid
from tests.support.hand_made import leaf, operation, view
book = RuleBook.default([{RULE!r}], families=["fusion"])
program = view(leaf(0), operation("exp", 0), operation("log", 1))
saturate(program, book)
before = worker_pid()
child = os.fork()
if child == 0:
    assert saturate(program, book).report.saturated
    os._exit(0 if worker_pid() != before else 1)
assert os.waitpid(child, 0)[1] == 0
assert saturate(program, book).report.saturated
assert worker_pid() == before
"""

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")


def test_a_script_without_a_main_guard_runs_once(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import relax_egraph as rx\n"
        "from relax_egraph.egraph.engine import RuleBook, saturate\n"
        "from tests.support.hand_made import leaf, operation, view\n"
        f"book = RuleBook.default([{RULE!r}], families=['fusion'])\n"
        "print(saturate(view(leaf(0), operation('exp', 0)), book).report.saturated)\n"
    )

    done = subprocess.run(
        [sys.executable, script],
        env={**os.environ, "PYTHONPATH": os.getcwd()},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )

    assert (done.stdout, done.stderr) == ("True\n", "")


def test_an_interrupted_run_ends_its_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    saturate(PROGRAM, BOOK)
    interrupted = worker_pid()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(process, "receive", interrupt)
        with pytest.raises(KeyboardInterrupt):
            saturate(PROGRAM, BOOK)

    with pytest.raises(ProcessLookupError):
        os.kill(interrupted, 0)
    assert saturate(PROGRAM, BOOK).report.saturated


def test_the_report_says_where_memory_cannot_be_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    ask = isolated.ask

    def unlimited(request: Request, names: Names) -> Answer:
        answer = ask(request, names)
        assert isinstance(answer, Answer)
        return replace(answer, limited=False)

    monkeypatch.setattr(isolated, "ask", unlimited)

    (note,) = saturate(PROGRAM, BOOK).report.notes
    assert note == "the worker process had no bound on its memory: this platform has none to set"
