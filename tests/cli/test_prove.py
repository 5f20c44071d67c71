"""The command relax-egraph rules prove."""

import json
from pathlib import Path

import pytest

from tests.support.command import invoke

pytest.importorskip("z3", reason="proofs need z3-solver")

TEXT = """\
; x + y = y + x
; float: exact
(rewrite (R.add x y) (R.add y x) :name "swap-of-sum")

; x - y = y - x, which is wrong
; float: exact
(rewrite (R.subtract x y) (R.subtract y x) :name "swap-of-difference")

; the running sum of negatives
; float: exact
(rewrite (R.cumsum (R.negative x) k "" false) (R.negative (R.cumsum x k "" false))
  :name "running-sum-of-negatives")
"""


def test_each_rule_has_a_status_and_a_reason(tmp_path: Path) -> None:
    file = tmp_path / "mine.egg"
    file.write_text(TEXT, "utf-8")

    result = invoke("rules", "prove", str(file), "--json")

    swap, difference, running = json.loads(result.stdout)
    assert result.exit_code == 1
    assert (swap["name"], swap["status"], swap["reason"]) == ("swap-of-sum", "proven", "")
    assert swap["ranks"] == [0, 1, 2, 3, 4]
    assert difference["status"] == "refuted"
    assert running["status"] == "not expressible"
    assert "cumsum" in running["reason"]


def test_a_proven_rule_is_printed_with_its_ranks() -> None:
    result = invoke("rules", "prove", "--only", "relu-twice")

    assert result.exit_code == 0
    assert result.stdout == (
        "relu-twice: proven for all extents, operands of the ranks 0, 1, 2, 3, 4\n"
    )


def test_nothing_to_prove_is_a_usage_error() -> None:
    result = invoke("rules", "prove")

    assert result.exit_code == 2
    assert "--all" in result.stderr
