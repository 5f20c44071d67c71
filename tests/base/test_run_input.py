"""A journal is of one input of each kind of run; it may get more tasks of it."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from relax_egraph.base.journal import Journal
from relax_egraph.base.run_input import RunInput

RULES = {"rules": "a", "trials": 3}


def of(parts: Mapping[str, object], *seeds: str, kind: str = "check") -> RunInput:
    return RunInput(kind, parts, "seeds", seeds)


@pytest.mark.parametrize(
    "another",
    [
        of(RULES, "0", "1"),
        of(RULES, "1", "2"),
        of(RULES),
        of({"rules": "b"}, "9", kind="proof"),
    ],
)
def test_the_same_input_with_any_of_its_tasks_goes_on(tmp_path: Path, another: RunInput) -> None:
    file = tmp_path / "run.jsonl"
    of(RULES, "0", "1").require_in(Journal(file))

    another.require_in(Journal(file))


@pytest.mark.parametrize(
    ("another", "what"),
    [
        (of(RULES | {"rules": "b"}, "0"), "rules"),
        (of(RULES | {"trials": 4}, "0"), "trials"),
        (of(RULES, "2", "3"), "seeds"),
    ],
)
def test_other_input_is_refused_and_the_file_stays(
    tmp_path: Path, another: RunInput, what: str
) -> None:
    file = tmp_path / "run.jsonl"
    of(RULES, "0", "1").require_in(Journal(file))
    text = file.read_bytes()

    with pytest.raises(ValueError, match=f"run.jsonl is of other {what} than this run; give each"):
        another.require_in(Journal(file))

    assert file.read_bytes() == text


def test_tasks_that_are_added_belong_to_the_input_from_then_on() -> None:
    journal = Journal()
    for seeds in ("0", "1"), ("1", "2"), ("2", "3"):
        of(RULES, *seeds).require_in(journal)

    of(RULES, "0").require_in(journal)
