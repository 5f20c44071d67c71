"""The command relax-egraph replay."""

import json
from pathlib import Path

import pytest

from tests.support.command import invoke

PROGRAM = """\
@R.function
def main(x: R.Tensor(("n", 4), "float32")):
    with R.dataflow():
        a = R.multiply(x, x)
        b = R.add(a, x)
        R.output(b)
    return b
"""

WRONG = """\
; x · y = x
; float: exact
(rewrite (R.multiply x y) x :name "drops-a-factor")
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def test_each_model_and_seed_has_a_line(program: Path, tmp_path: Path) -> None:
    other, journal = tmp_path / "other.py", tmp_path / "replays.jsonl"
    other.write_text(PROGRAM.replace("R.multiply(x, x)", "R.exp(x)"))
    words = ("replay", program, other, "--seeds", 2, "--processes", 1, "--journal", journal)

    told = json.loads(invoke(*words, "--json").stdout)
    text = journal.read_bytes()
    printed = invoke(*words)

    assert [(one["model"], one["seed"], one["failure"]) for one in told] == [
        (str(program), 0, ""),
        (str(program), 1, ""),
        (str(other), 0, ""),
        (str(other), 1, ""),
    ]
    assert told[0]["steps"] > 0
    assert printed.exit_code == 0
    assert printed.stdout.splitlines()[-1] == "4 replays: 4 hold, 0 do not"
    assert journal.read_bytes() == text


def test_a_step_that_does_not_hold_is_status_1_and_names_its_rule(
    program: Path, tmp_path: Path
) -> None:
    rules = tmp_path / "my.egg"
    rules.write_text(WRONG)

    result = invoke("replay", program, "--rules", rules, "--processes", 1)

    assert result.exit_code == 1
    assert "drops-a-factor" in result.stdout
    assert result.stdout.splitlines()[-1] == "1 replay: 0 hold, 1 do not"


def test_sizes_of_unknown_symbols_are_a_usage_error(program: Path) -> None:
    result = invoke("replay", program, "--size", "m=3", "--processes", 1)

    assert result.exit_code == 2
    assert result.stderr.startswith("Error: ")
