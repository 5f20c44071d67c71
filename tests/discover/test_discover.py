"""Rules are found over chosen operators: few, sound, and none that follows from the others."""

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import sleep
from typing import Any

import pytest

from relax_egraph.base.journal import Journal
from relax_egraph.discover import bounded
from relax_egraph.discover.bounded import Bounded, OutOfTime
from relax_egraph.discover.candidates import Candidate
from relax_egraph.discover.evaluation import Values, fingerprint_of, leaf_values, values_of
from relax_egraph.discover.files import write_rules
from relax_egraph.discover.run import Discovery, Search, discover
from relax_egraph.discover.status import is_wrong, status_of
from relax_egraph.discover.terms import Apply, Literal, Number, Term, Variable
from relax_egraph.prove import solver
from relax_egraph.verify.file_tests.cases import read_tests
from relax_egraph.verify.file_tests.run import run_test
from relax_egraph.workers.pool import Pool

X, Y = Variable("x"), Variable("y")
SIGNS = Search(("R.add", "R.negative"), 2, families=())


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The journal of a whole run of `SIGNS`."""
    file = tmp_path_factory.mktemp("discover") / "run.jsonl"
    discover(SIGNS, Journal(file))
    return file


def laws(discovery: Discovery) -> set[str]:
    return {str(found.candidate) for found in discovery.found}


def test_the_minimal_set_has_commutativity_and_distributivity_and_no_consequence() -> None:
    found = discover(Search(("R.add", "R.multiply"), 3, families=(), variables=3))

    assert laws(found) == {
        "(R.add x y) = (R.add y x)",
        "(R.multiply x y) = (R.multiply y x)",
        "(R.add (R.add x y) z) = (R.add x (R.add y z))",
        "(R.multiply (R.multiply x y) z) = (R.multiply x (R.multiply y z))",
        "(R.add (R.multiply x y) (R.multiply x z)) = (R.multiply x (R.add y z))",
    }
    assert found.stopped == ""


def test_what_the_book_proves_is_not_found() -> None:
    found = discover(replace(SIGNS, families=("canon",)))

    assert laws(found) == {"(R.add (R.add x y) z) = (R.add x (R.add y z))"}


def test_attributes_are_variables_that_both_sides_share() -> None:
    found = discover(Search(("R.sum", "R.negative"), 2, families=(), variables=1))

    assert laws(found) == {
        "(R.negative (R.negative x)) = x",
        "(R.sum (R.negative x) a keep) = (R.negative (R.sum x a keep))",
        "(R.sum (R.sum x a true) a keep) = (R.sum x a keep)",
        "(R.sum (R.sum x b true) a true) = (R.sum (R.sum x a true) b true)",
    }


def test_tensors_are_stacked_and_an_axis_by_itself_is_one_of_a_reduction() -> None:
    found = discover(Search(("R.stack", "R.sum", "R.add"), 2, variables=2, families=("canon",)))

    assert "(R.sum (R.stack (vec-of x y) k) (vec-of k) false) = (R.add x y)" in laws(found)


def test_an_axis_that_is_written_out_is_one_of_matrices() -> None:
    found = discover(Search(("R.sum", "R.matmul"), 2, variables=2, families=(), axes=(0,)))

    law = "(R.sum (R.matmul x y) (vec-of 0) keep) = (R.matmul (R.sum x (vec-of 0) keep) y)"
    texts = {str(f.candidate): f.text for f in found.found}
    assert ":when ((= 2 (rank-of x)) (= 2 (rank-of y))" in texts[law]


def test_a_wrong_equation_is_refused_though_it_holds_of_all_finite_numbers() -> None:
    zero = Apply("R.subtract", (X, X))
    planted = Candidate(Apply("R.multiply", (zero, Y)), zero, (0, 1), 0.0)

    assert is_wrong(planted)


def test_reductions_of_reductions_are_compared_where_the_inner_one_has_no_elements() -> None:
    again = Variable("a", "Axes"), Variable("keep", "bool")
    zero = Number(0.0)
    inner = Apply("R.max", (zero, *again))
    values: dict[Term, Values] = {zero: leaf_values(zero)}
    values[inner] = values_of(inner, values.__getitem__)

    of_max, of_sum = (
        fingerprint_of(values_of(Apply(head, (inner, *again)), values.__getitem__))
        for head in ("R.max", "R.sum")
    )

    assert of_max != of_sum


def test_a_guard_that_makes_a_special_case_is_not_taken() -> None:
    axes = Literal("Axes", (0,))
    keep = Literal("bool", True)
    planted = Candidate(Apply("R.sum", (X, axes, keep)), X, (0, 1), 0.0)

    status = status_of(planted)

    assert not status.is_rule
    assert status.guard == ""


def test_a_run_that_was_killed_goes_on_from_its_journal(
    journal: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = journal.read_bytes().splitlines(keepends=True)
    killed = tmp_path / "killed.jsonl"
    killed.write_bytes(b"".join(lines[:-3]) + lines[-3][:20])
    whole = discover(SIGNS, Journal(journal))
    asked: list[object] = []
    run = Bounded.run

    def counted(self: Bounded, call: Callable[[], Any]) -> Any:
        asked.append(call)
        return run(self, call)

    monkeypatch.setattr(Bounded, "run", counted)

    resumed = discover(SIGNS, Journal(killed))

    assert resumed.as_dict() == whole.as_dict()
    assert len(asked) == 3
    assert killed.read_bytes() == b"".join(lines)


def test_what_takes_too_long_has_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "_SECONDS", 2.0)

    with Bounded(60) as worker:
        assert worker.run(partial(sleep, 30)) is None
        assert worker.run(partial(abs, -1)) == 1


def test_no_call_outlives_the_run() -> None:
    with Bounded(0.2) as worker, pytest.raises(OutOfTime):
        worker.run(partial(sleep, 30))


def test_a_found_rule_says_what_is_proven_of_it() -> None:
    pytest.importorskip("z3")
    doubled = Candidate(Apply("R.negative", (Apply("R.negative", (X,)),)), X, (0, 1), 0.0)

    assert status_of(doubled).proof == "proven for all extents, operands of the ranks 0, 1, 2, 3, 4"


def test_without_z3_a_found_rule_is_checked_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "z3", None)
    solver.z3.cache_clear()
    summed = Candidate(Apply("R.add", (X, Y)), Apply("R.add", (Y, X)), (0, 1), 0.0)

    status = status_of(summed)

    assert status.is_rule
    assert status.proof == "not proven: proofs need z3: pip install relax-egraph[prove]"


def test_a_run_within_no_time_says_why_it_ended() -> None:
    found = discover(replace(SIGNS, seconds=0))

    assert found.stopped == "the limit of 0 s"
    assert laws(found) == set()


def test_found_rules_and_their_file_tests_are_files_of_the_project(
    journal: Path, tmp_path: Path
) -> None:
    found = discover(SIGNS, Journal(journal))

    cases = write_rules(found, tmp_path / "found.egg")

    tests = read_tests(cases)
    assert [test.fires for test in tests] == [(one.name,) for one in found.found]
    assert all(run_test(test).passed for test in tests)


def test_a_search_in_several_processes_finds_the_same_and_goes_on_in_one(
    journal: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "run.jsonl"
    whole = discover(SIGNS, Journal(journal))

    assert discover(SIGNS, Journal(file), executor=partial(Pool, 3)).as_dict() == whole.as_dict()

    def run(self: Bounded, call: Callable[[], Any]) -> Any:
        raise AssertionError(f"{call} runs again")

    monkeypatch.setattr(Bounded, "run", run)
    assert discover(SIGNS, Journal(file)).as_dict() == whole.as_dict()


@pytest.mark.parametrize(
    ("search", "said"),
    [
        (replace(SIGNS, families=("canon",)), "families of rules"),
        (replace(SIGNS, numbers=(1.0,)), "operators, variables, numbers or axes"),
        (replace(SIGNS, fast_math=True), "float classes"),
        (replace(SIGNS, seed=1), "seeds"),
    ],
)
def test_a_journal_of_another_search_is_refused(journal: Path, search: Search, said: str) -> None:
    with pytest.raises(ValueError, match=f"run.jsonl is of other {said} than this run; give"):
        discover(search, Journal(journal))


def test_an_operator_that_terms_cannot_have_is_refused() -> None:
    with pytest.raises(ValueError, match=r"R.astype has `dtype` of sort String"):
        discover(Search(("R.astype",), 1))


def test_a_file_that_is_no_journal_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("a note\n", "utf-8")

    with pytest.raises(ValueError, match=r"notes.txt:1 is no line of a journal"):
        Journal(file)
