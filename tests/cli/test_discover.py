"""The command relax-egraph rules discover."""

import json
from pathlib import Path

from tests.support.command import invoke

SIGNS = ("rules", "discover", "--ops", "R.negative,R.abs", "--size", "2", "--no-book")

FOUND = """\
; --x = x
; check: exact; 42 instances
; proof: proven for all extents, operands of the ranks 0, 1, 2, 3, 4
; gain: 171 µs in 1024 x 1024 elements
; float: exact
(rewrite (R.negative (R.negative x)) x
  :name "found-negative-of-negative")
"""


def test_rules_are_printed_as_a_rule_file() -> None:
    result = invoke(*SIGNS)

    assert result.exit_code == 0
    assert FOUND in result.stdout
    assert result.stdout.count("(rewrite ") == 3


def test_rules_are_written_with_a_file_test(tmp_path: Path) -> None:
    file, journal = tmp_path / "found.egg", tmp_path / "run.jsonl"

    result = invoke(*SIGNS, "-o", str(file), "--journal", str(journal), "--json")

    laws = [rule["law"] for rule in json.loads(result.stdout)["rules"]]
    assert laws == ["--x = x", "||x|| = |x|", "|-x| = |x|"]
    assert FOUND in file.read_text("utf-8")
    tested = invoke("rules", "test", str(tmp_path / "found.cases.egg"), "--processes", "1")
    assert tested.stdout == "3 cases in 1 file: 3 passed, 0 failed\n"


def test_an_unknown_operator_is_a_usage_error() -> None:
    result = invoke("rules", "discover", "--ops", "R.ad")

    assert result.exit_code == 2
    assert result.stderr == "Error: there is no operator 'R.ad'; did you mean R.add?\n"
