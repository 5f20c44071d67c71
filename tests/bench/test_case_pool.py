"""Cases in processes: each has an outcome, whatever becomes of its process, and is kept."""

import os
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bench.case_pool import Suite, outcomes
from relax_egraph.base.journal import Journal
from relax_egraph.workers.pool import Pool

CASES = ("a", "dies", "waits", "b")


def run(case: str) -> str:
    match case:
        case "dies":
            os._exit(1)
        case "waits":
            time.sleep(600)
        case _:
            pass
    return case.upper()


def lost(case: str, reason: str) -> str:
    return f"{case}: {reason}"


def failed(outcome: str) -> bool:
    return ":" in outcome


def data(outcome: str) -> Mapping[str, str]:
    return {"text": outcome}


def outcome(data: Mapping[str, str]) -> str:
    return data["text"]


SUITE = Suite("tests.bench.test_case_pool", str, run, lost, failed, data, outcome, limit=1.0)

FOUND = ["A", "dies: its process ended with code 1", "waits: its process was ended after 1 s", "B"]


def runs(case: str) -> str:
    raise AssertionError(f"{case} runs again")


def test_outcomes_are_in_order_and_a_lost_process_has_one() -> None:
    assert outcomes(SUITE, CASES, partial(Pool, 2)) == FOUND


def test_a_run_that_was_killed_goes_on_with_the_cases_that_have_no_outcome(tmp_path: Path) -> None:
    file = tmp_path / "cases.jsonl"
    outcomes(SUITE, CASES[:2], journal=Journal(file))
    with file.open("ab") as stream:
        stream.write(b'{"question": "')

    assert outcomes(SUITE, CASES, partial(Pool, 2), Journal(file)) == FOUND
    assert outcomes(replace(SUITE, run=runs), ("a", "b"), journal=Journal(file)) == ["A", "B"]


@pytest.mark.parametrize(
    ("change", "cases", "said"),
    [
        ({"options": {"dtype": "int8"}}, ("a",), "options"),
        ({"libraries": ("onnx",)}, ("a",), "versions of relax-egraph or its libraries"),
        ({}, ("b",), "cases"),
    ],
)
def test_a_journal_of_another_run_is_refused(
    tmp_path: Path, change: dict[str, Any], cases: tuple[str, ...], said: str
) -> None:
    file = tmp_path / "cases.jsonl"
    outcomes(SUITE, ["a"], journal=Journal(file))

    with pytest.raises(ValueError, match=f"cases.jsonl is of other {said} than this run; give"):
        outcomes(replace(SUITE, **change), cases, journal=Journal(file))


def test_an_interruption_ends_the_run_with_the_outcomes_so_far(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupted(outcome: str) -> bool:
        if outcome == "B":
            raise KeyboardInterrupt
        return False

    found = outcomes(replace(SUITE, failed=interrupted), ["a", "b", "waits"])

    assert found == ["A", "B"]
    assert "interrupted: 2 of 3 cases ran\n" in capsys.readouterr().err
