"""Long work that is interrupted passes on what it has found."""

import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import relax_egraph as rx
from relax_egraph.cli import check as check_command
from relax_egraph.discover.run import Search, discover
from relax_egraph.errors import Interrupted
from relax_egraph.prove import questions
from relax_egraph.verify.file_tests.cases import read_tests
from relax_egraph.verify.file_tests.pool import run_tests
from tests.support.command import invoke
from tests.support.sound_rules import NEGATIVES

RULES = f"""\
{NEGATIVES}
; -(x - y) = y - x
; float: exact
(rewrite (R.negative (R.subtract x y)) (R.subtract y x) :name "negative-of-subtract-again")
"""

CASES = """\
; RULES: my.egg
; FIRES: negative-twice-again
(let $x (Leaf 0))
(dtype-claim $x "float32")
(shape-claim $x (vec-of (DimSym "n")))
(let $y (R.negative (R.negative $x)))
(run-schedule (saturate (seq (run facts) (run dim) (run my))))
(check (= $x $y))
; -----
; FIRES: both-negative-again
(let $x (Leaf 0))
(dtype-claim $x "float32")
(shape-claim $x (vec-of (DimSym "n")))
(let $y (R.multiply (R.negative $x) (R.negative $x)))
(run-schedule (saturate (seq (run facts) (run dim) (run my))))
(check (= $y (R.multiply $x $x)))
"""


def after(calls: int) -> Callable[..., None]:
    """A callback that is interrupted at its call of this number."""
    count = 0

    def interrupted(*_: object) -> None:
        nonlocal count
        count += 1
        if count == calls:
            raise KeyboardInterrupt

    return interrupted


def test_a_check_has_the_verdicts_that_are_final() -> None:
    whole = rx.rules.check(RULES, processes=1)

    with pytest.raises(Interrupted, match="2 of 3 rules were checked") as stop:
        rx.rules.check(RULES, processes=1, progress=after(2))

    assert list(map(str, stop.value.done)) == list(map(str, whole[:2]))


def test_proofs_are_kept() -> None:
    whole = rx.rules.prove(RULES)

    with pytest.raises(Interrupted, match="1 of 3 rules were tried") as stop:
        rx.rules.prove(RULES, progress=after(2))

    assert list(map(str, stop.value.done)) == list(map(str, whole[:1]))


def test_cases_that_were_run_have_outcomes(tmp_path: Path) -> None:
    cases = tmp_path / "cases.egg"
    cases.write_text(CASES)
    (tmp_path / "my.egg").write_text(RULES)
    tests = read_tests(cases)

    with pytest.raises(Interrupted, match="1 of 2 cases were run") as stop:
        run_tests(tests, progress=after(1))

    assert [outcome.passed for outcome in stop.value.done] == [True]


def test_a_search_has_the_rules_that_it_found() -> None:
    with pytest.raises(Interrupted) as stop:
        discover(Search(("R.add", "R.negative"), 2, families=()), progress=after(2))

    found = stop.value.done
    assert stop.value.extent == f"{len(found.found)} rules were found"
    assert found.stopped == "an interruption"
    assert found.found


def test_the_command_prints_what_was_done_and_exits_with_130(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my.egg").write_text(RULES)
    monkeypatch.setattr(check_command, "counted", Stopping)

    result = invoke("rules", "check", "my.egg", "--processes", 1, "--verbose")

    assert result.stdout.startswith("negative-twice-again (my.egg:3:1): exact; ")
    assert "1 rule: 1 as declared, 0 not" in result.stdout
    assert result.stderr == "interrupted: 1 of 3 rules were checked\n"
    assert result.exit_code == 130


class Stopping:
    def __init__(self, doing: str, total: int) -> None:
        """Like `counted`."""

    def __enter__(self) -> Callable[..., None]:
        return after(1)

    def __exit__(self, *_: object) -> None:
        pass


def test_an_interrupted_command_without_findings_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    Path("my.egg").write_text(RULES)
    monkeypatch.setattr("relax_egraph.egraph.rulebook.book.RuleBook.default", interrupted)

    result = invoke("rules", "check", "my.egg")

    assert (result.stdout, result.stderr, result.exit_code) == ("", "interrupted\n", 130)


def test_a_question_to_the_solver_that_is_interrupted_is_no_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    z3 = questions.z3()
    x, y, z = z3.Ints("x y z")
    hard = [x > 2, y > 2, z > 2, x * x * x + y * y * y == z * z * z]
    timer = threading.Timer(0.05, signal.raise_signal, [signal.SIGINT])
    check = z3.Solver.check

    def checked(solver: Any) -> Any:
        timer.start()  # not before: Python ignores an interruption of a finalizer
        return check(solver)

    monkeypatch.setattr(z3.Solver, "check", checked)

    with interruptible(), pytest.raises(KeyboardInterrupt):
        questions.ask(hard, 10_000_000)  # a second
    timer.join()


@contextmanager
def interruptible() -> Generator[None]:
    """Heed interruptions: a shell may have started the tests in the background without them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
