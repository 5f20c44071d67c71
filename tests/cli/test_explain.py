"""``relax-egraph explain``."""

import json
from pathlib import Path

import pytest

from relax_egraph.reasons.no_block import NO_BLOCK
from tests.reasons.test_explain import DENSE
from tests.support.command import invoke


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(DENSE)
    return path


def test_it_is_said_as_text(program: Path) -> None:
    result = invoke("explain", program, "--quick")

    assert result.exit_code == 0, result.output
    assert "relu-twice" in result.output
    assert "proven bound" in result.output


def test_json_has_all_figures(program: Path) -> None:
    result = invoke("explain", program, "--json", "--proof")

    told = json.loads(result.stdout)
    assert told["file"] == str(program)
    assert told["missing"] == {}
    assert {"load-of-store"} <= {rule["rule"] for rule in told["rules"] if rule["share"]}
    assert [trace["output"] for trace in told["proof"]] == ["out"]


def test_a_page_is_written(program: Path, tmp_path: Path) -> None:
    page = tmp_path / "why.html"

    result = invoke("explain", program, "--quick", "--html", page)

    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"{page}: 3 kernels, ")
    assert page.read_text("utf-8").startswith("<!DOCTYPE html>")


def test_a_proof_is_printed_step_by_step(program: Path) -> None:
    result = invoke("explain", program, "--quick", "--proof")

    assert "main, output out: " in result.output
    assert "max(max(x, 0), 0) = max(x, 0)" in result.output


def test_rules_of_the_user_are_among_those_that_are_explained(
    program: Path, tmp_path: Path
) -> None:
    rules = tmp_path / "mine.egg"
    rules.write_text('(rewrite (R.add x y) (R.add y x) :name "mine")')

    told = json.loads(invoke("explain", program, "--rules", rules, "--quick", "--json").stdout)

    assert [rule["rule"] for rule in told["rules"] if rule["user"]] == ["mine"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '@R.function\ndef main(x: R.Tensor((4,), "float32")):\n    return x\n',
            NO_BLOCK,
        ),
        (None, "does not exist"),
    ],
)
def test_what_cannot_be_explained_is_status_2(
    text: str | None, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "model.py"
    if text is not None:
        path.write_text(text)

    result = invoke("explain", path)

    assert result.exit_code == 2
    assert message in result.stderr
    assert len([line for line in result.stderr.splitlines() if "Error" in line]) == 1


def test_an_unknown_rule_is_status_2(program: Path) -> None:
    result = invoke("explain", program, "--without", "relu-thrice")

    assert result.exit_code == 2
    assert "no family or rule is named 'relu-thrice'" in result.stderr


def test_a_page_needs_a_folder(program: Path, tmp_path: Path) -> None:
    result = invoke("explain", program, "--html", tmp_path / "nowhere" / "why.html")

    assert result.exit_code == 2
    assert "there is no folder" in result.stderr
