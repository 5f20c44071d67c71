"""Cases in processes: each has an outcome, whatever becomes of its process."""

import os
import time

import pytest

from bench.case_pool import outcomes


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


def test_outcomes_are_in_order_and_a_lost_process_has_one() -> None:
    found = outcomes(["a", "dies", "waits", "b"], run, lost, 2, failed, limit=1.0)

    assert found == ["A", "dies: the process died", "waits: takes more than 1 s", "B"]


def test_an_interruption_ends_the_run_with_the_outcomes_so_far(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupted(outcome: str) -> bool:
        if outcome == "B":
            raise KeyboardInterrupt
        return False

    found = outcomes(["a", "b", "waits"], run, lost, 1, interrupted)

    assert found == ["A", "B"]
    assert "interrupted: 2 of 3 cases ran\n" in capsys.readouterr().err
