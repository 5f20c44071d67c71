"""A check that was stopped goes on from its journal; checks with several seeds."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from relax_egraph.base.journal import Journal
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.errors import Interrupted
from relax_egraph.verify.check import Check, check_rules, check_seeds
from relax_egraph.verify.verdict import Verdict, weakest
from relax_egraph.verify.work import Unit, Work
from relax_egraph.vm.registry import register_func
from tests.support.sound_rules import NEGATIVES

WRONG = """\
; x + x = x
; float: exact
(rewrite (R.add x x) x :name "doubled-is-single")
"""
SEEDS = (0, 1)


@pytest.fixture(scope="module")
def book() -> RuleBook:
    return RuleBook.default([NEGATIVES + WRONG], families=())


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str]]:
    """The seeds and the subjects of units that were run."""
    units: list[tuple[int, str]] = []
    do = Work.do

    def counted(self: Work, unit: Unit) -> tuple[Verdict, ...]:
        units.append((unit.seed, unit.subject))
        return do(self, unit)

    monkeypatch.setattr(Work, "do", counted)
    return units


def shown(verdicts: "dict[int, tuple[Verdict, ...]]") -> dict[int, list[tuple[str, object]]]:
    return {s: [(str(v), v.as_dict()) for v in some] for s, some in verdicts.items()}


def checked(check: Check, progress: Callable[[Verdict], object] | None = None) -> object:
    return shown({**check_seeds(check, SEEDS, progress)})


def test_an_interrupted_check_goes_on_where_it_was(
    book: RuleBook, tmp_path: Path, done: list[tuple[int, str]]
) -> None:
    file = tmp_path / "check.jsonl"
    whole = checked(Check(book, trials=2))
    units = list(done)

    def stop(_: Verdict) -> None:
        if len(done) == 2:
            raise KeyboardInterrupt

    done.clear()
    with pytest.raises(Interrupted, match="2 of 6 rules with 2 seeds were checked") as stopped:
        checked(Check(book, trials=2, journal=Journal(file)), stop)
    assert [len(some) for some in stopped.value.done.values()] == [2, 0]
    done.clear()
    resumed = checked(Check(book, trials=2, journal=Journal(file)))

    assert resumed == whole
    assert done == units[2:]


def test_any_prefix_of_the_journal_gives_the_same_verdicts(book: RuleBook, tmp_path: Path) -> None:
    file = tmp_path / "check.jsonl"
    whole = checked(Check(book, trials=2, journal=Journal(file)))
    text = file.read_bytes()

    for size in range(0, len(text), len(text) // 5):
        killed = tmp_path / f"{size}.jsonl"
        killed.write_bytes(text[:size])

        assert checked(Check(book, trials=2, journal=Journal(killed))) == whole


def test_what_has_a_counterexample_is_computed_again(
    book: RuleBook, tmp_path: Path, done: list[tuple[int, str]]
) -> None:
    file = tmp_path / "check.jsonl"
    whole = checked(Check(book, trials=2, journal=Journal(file)))
    done.clear()

    assert checked(Check(book, trials=2, journal=Journal(file))) == whole
    assert done == [(0, "doubled-is-single"), (1, "doubled-is-single")]


def test_the_same_check_asks_nothing_again_and_a_larger_one_only_what_is_new(
    book: RuleBook, tmp_path: Path, done: list[tuple[int, str]]
) -> None:
    file, only = tmp_path / "check.jsonl", ["negative-twice-again"]
    for seeds, new in (SEEDS, SEEDS), (SEEDS, ()), ((1, 2), (2,)):
        done.clear()

        check_seeds(Check(book, only, trials=2, journal=Journal(file)), seeds)

        assert done == [(seed, only[0]) for seed in new]


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ("trials", "rules, programs or --trials"),
        ("rules", "rules, programs or --trials"),
        ("seeds", "seeds"),
    ],
)
def test_a_journal_of_another_check_is_refused_and_stays(
    book: RuleBook, tmp_path: Path, other: str, said: str
) -> None:
    file, only = tmp_path / "check.jsonl", ["negative-twice-again"]
    check_seeds(Check(book, only, trials=2, journal=Journal(file)), SEEDS)
    text = file.read_bytes()
    changed = RuleBook.default([NEGATIVES], families=()) if other == "rules" else book
    trials = 3 if other == "trials" else 2
    seeds = (7, 8) if other == "seeds" else SEEDS

    with pytest.raises(ValueError, match=f"check.jsonl is of other {said} than this run; give"):
        check_seeds(Check(changed, only, trials=trials, journal=Journal(file)), seeds)

    assert file.read_bytes() == text


def test_seeds_are_checked_as_one_by_one(book: RuleBook) -> None:
    alone = {seed: check_rules(book, trials=2, seed=seed) for seed in SEEDS}

    assert checked(Check(book, trials=2)) == shown(alone)


def test_the_weakest_verdict_of_several_seeds_counts(book: RuleBook) -> None:
    right, *_, wrong = check_rules(book, trials=2)
    silent = replace(right, fired=0)

    assert weakest([[right, wrong], [right]]) == (right, wrong)
    assert weakest([[right], [silent], [right]]) == (silent,)


def test_a_journal_keeps_nothing_of_python_functions(tmp_path: Path) -> None:
    @register_func("journal.same", override=True)
    def same(x: object) -> object:
        return x

    rule = '(rewrite (R.negative (R.negative x)) (R.call_pure_packed "journal.same" (vec-of x)))'
    journal = Journal(tmp_path / "check.jsonl")

    with pytest.raises(ValueError, match="a journal keeps no verdicts on rules that call Python"):
        check_seeds(Check(RuleBook.default([rule]), trials=1, journal=journal), SEEDS)
