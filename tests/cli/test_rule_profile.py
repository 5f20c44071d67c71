"""``relax-egraph rules profile``."""

import json
from pathlib import Path

import pytest

import relax_egraph as rx
from tests.reasons.test_explain import DENSE
from tests.support.command import invoke


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(DENSE)
    return path


def test_the_slowest_rules_are_a_table(program: Path) -> None:
    result = invoke("rules", "profile", program, "--most", 3)

    assert result.exit_code == 0, result.output
    head, *_, last = result.stdout.splitlines()[1:]
    assert head.replace("┃", " ").split() == [
        "rule",
        "family",
        "search,",
        "ms",
        "matches",
        "iterations",
    ]
    assert result.stdout.count("│") == 6 * (3 + 1)
    assert " more" in result.stdout
    assert [part.split()[0] for part in last.split(", ")] == ["search", "saturation", "extraction"]


def test_json_has_every_rule_that_was_searched(program: Path) -> None:
    result = invoke("rules", "profile", program, "--json")

    told = json.loads(result.stdout)
    rules = {rule["rule"]: rule for rule in told["rules"]}
    matched = rx.explain(rx.parse(DENSE)).rules
    assert "relu-twice" in matched
    assert {name: rules[name]["matches"] >= count for name, count in matched.items()} == (
        dict.fromkeys(matched, True)
    )
    assert all(rule["seconds"] > 0 and rule["iterations"] > 0 for rule in told["rules"])
    assert rules["relu-twice"]["family"] == "canon"
    assert rules["lower-matmul"] == {
        "rule": "lower-matmul",
        "family": "lower",
        "matches": 2,
        "iterations": 1,
        "seconds": rules["lower-matmul"]["seconds"],
    }
    assert told["saturation"] > 0
    assert told["extraction"] > 0


def test_a_model_without_operators_has_no_rules_to_time(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text("@R.function\ndef main(x: R.Tensor((2,), 'float32')):\n    return x\n")

    result = invoke("rules", "profile", path)

    assert result.exit_code == 2
    assert "no operator without effects" in result.output
