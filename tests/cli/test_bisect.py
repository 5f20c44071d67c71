"""The command relax-egraph bisect."""

import json
from pathlib import Path

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph.reasons.bisect import bisect
from relax_egraph.reasons.gains import bisect_cost
from relax_egraph.reasons.no_block import NO_BLOCK
from tests.support.command import invoke

PROGRAM = """\
@R.function
def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("n", 4), "float32")):
    with R.dataflow():
        a = R.exp(R.negative(x))
        b = R.add(R.multiply(a, y), x)
        R.output(b)
    return b
"""

WRONG = """\
; eˣ is even
; float: exact
(rewrite (R.exp (R.negative z)) (R.exp z) :name "exp-is-even")
"""

X, Y = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    path = tmp_path / "my.egg"
    path.write_text(WRONG)
    return path


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "inputs.npz"
    np.savez(path, x=X, y=Y)
    return path


def refused(*args: object, status: int = 2) -> str:
    """The last line of what is said of wrong use."""
    result = invoke("bisect", *args)
    assert result.exit_code == status, result.output
    return result.output.splitlines()[-1]


def test_a_wrong_rule_is_named_with_what_it_is_wrong_for(
    program: Path, wrong: Path, archive: Path
) -> None:
    result = invoke("bisect", program, "--rules", wrong, "--inputs", archive)

    assert result.exit_code == 0, result.output
    assert "exp-is-even" in result.output
    assert "unsound by itself" in result.output
    assert f"exp-is-even ({wrong}:3:1): unsound" in result.output
    assert "right without exp-is-even (" in result.output.splitlines()[-1]


def test_the_same_as_json(program: Path, wrong: Path, archive: Path) -> None:
    result = invoke("bisect", program, "--rules", wrong, "--inputs", archive, "--json")

    told = json.loads(result.stdout)
    found = bisect(rx.load_module(program), [X, Y], [wrong])
    expected = {"file": str(program), "function": "main", "random": [], **found.as_dict()}
    assert {**told, "seconds": 0} == {**expected, "seconds": 0}
    assert [[c["rule"] for c in rules] for rules in told["sets"]] == [["exp-is-even"]]


def test_what_is_within_tolerance_is_done(program: Path, archive: Path) -> None:
    result = invoke("bisect", program, "--inputs", archive)

    assert result.exit_code == 0, result.output
    assert result.output.startswith("nothing to find: output 0 at [")


def test_a_tolerance_of_nothing_finds_what_rounds_otherwise(program: Path, archive: Path) -> None:
    result = invoke("bisect", program, "--inputs", archive, "--tol", 0, "--atol", 0, "--json")

    sets = json.loads(result.stdout)["sets"]
    assert [[c["rule"] for c in rules] for rules in sets] == [["fma-from-add-multiply"]]


def test_arguments_that_are_not_given_are_random(
    program: Path, wrong: Path, tmp_path: Path
) -> None:
    np.save(tmp_path / "x.npy", X)

    result = invoke(
        "bisect", program, "--rules", wrong, "--input", f"x={tmp_path / 'x.npy'}", "--json"
    )

    told = json.loads(result.stdout)
    assert told["random"] == ["y"]
    assert told["exceeds"]


def test_a_cost_has_a_table_and_what_is_redundant(program: Path) -> None:
    result = invoke("bisect", program, "--metric", "cost", "--gain", 1)

    assert result.exit_code == 0, result.output
    assert "* buys 100.0% of the gain" in result.output
    assert "load-of-store" in result.output
    assert "matched, and can be left out together: add-commutes, " in result.output


def test_a_cost_as_json(program: Path) -> None:
    result = invoke("bisect", program, "--metric", "cost", "--json")

    told = json.loads(result.stdout)
    expected = {"file": str(program), **bisect_cost(rx.load_module(program)).as_dict()}
    assert {**told, "seconds": 0} == {**expected, "seconds": 0}


def test_costs_of_several_models_are_a_list_and_are_kept(program: Path, tmp_path: Path) -> None:
    other, journal = tmp_path / "other.py", tmp_path / "costs.jsonl"
    other.write_text(PROGRAM.replace("R.negative(x)", "x"))
    words = ("bisect", program, other, "--metric", "cost", "--journal", journal)

    told = json.loads(invoke(*words, "--json").stdout)
    text = journal.read_bytes()
    again = json.loads(invoke(*words, "--json").stdout)
    printed = invoke(*words).stdout

    assert [one["file"] for one in told] == [str(program), str(other)]
    assert again == told
    assert journal.read_bytes() == text
    assert [line for line in printed.splitlines() if line.endswith(".py:")] == [
        f"{program}:",
        f"{other}:",
    ]


def test_wrong_use_is_one_line(program: Path, archive: Path, tmp_path: Path) -> None:
    empty, plain, text = (tmp_path / name for name in ("none.py", "x.npy", "text.npz"))
    empty.write_text("@R.function\ndef main(x: R.Tensor((2,), 'float32')):\n    return x\n")
    np.save(plain, X)
    text.write_text("text")

    assert refused(program, "--gain", 0.5) == "Error: --gain is of costs: needs --metric cost"
    assert refused(program, "--metric", "cost", "--inputs", archive) == (
        "Error: a cost has no inputs and no tolerance: needs --metric result"
    )
    assert refused(program, "--journal", tmp_path / "j") == (
        "Error: --ray and --journal are for costs: needs --metric cost"
    )
    assert refused(program, empty) == (
        "Error: results of one MODEL are compared: several need --metric cost"
    )
    assert refused(program) == "Error: the size of n is unknown: use --size n=128"
    assert refused(program, "--inputs", plain) == (
        f"Error: Invalid value for '--inputs': {plain} is one array: "
        "needs an archive (.npz), or --input"
    )
    assert refused(program, "--inputs", text) == (
        f"Error: Invalid value for '--inputs': {text} is no archive of arrays (.npz)"
    )
    assert refused(program, "--inputs", archive, "--function", "f") == (
        "Error: Invalid value for --function: no function 'f' in the model"
    )
    assert refused(program, "--inputs", archive, "--without", "idiom") == (
        "Error: no family or rule is named 'idiom'; did you mean idioms?"
    )
    assert refused(program, "--inputs", archive, "--tol", "nan") == (
        "Error: rtol is nan, needs a finite number, 0 or more, or None"
    )
    nothing = f"Error: {NO_BLOCK}"
    assert refused(empty) == nothing
    assert refused(empty, "--metric", "cost") == nothing


def test_wrong_inputs_and_rules_are_said(program: Path, archive: Path, tmp_path: Path) -> None:
    narrow, broken = tmp_path / "narrow.npz", tmp_path / "broken.egg"
    np.savez(narrow, x=X, y=Y[:, :2])
    broken.write_text("(rewrite (R.ex z) z)")

    assert refused(program, "--inputs", narrow, status=1).startswith(
        "Error: main: parameter y is R.Tensor((3, 2)"
    )
    result = invoke("bisect", program, "--inputs", archive, "--rules", broken)
    assert (result.exit_code, "unknown operator R.ex" in result.output) == (1, True)
    np.savez(narrow, x=X, z=Y)
    assert refused(program, "--inputs", narrow) == (
        "Error: Invalid value for --input: main has no parameter z; it has x, y"
    )
