"""The command ``relax-egraph why-not``."""

import json
from pathlib import Path

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph.reasons.no_block import NO_BLOCK
from relax_egraph.reasons.why_not import why_not
from tests.support.command import invoke
from tests.support.onnx_models import model, node, value

PROGRAM = """\
@R.function
def main(x: R.Tensor(("n", 4), "float32")):
    with R.dataflow():
        a = R.exp(x)
        b = R.add(a, R.const(1.0, "float32"))
        gv = R.divide(a, b)
        R.output(gv)
    return gv
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def test_it_prints_what_the_function_returns(program: Path) -> None:
    result = invoke("why-not", "silu-from-exp", program, "--at", "gv")

    assert result.exit_code == 0
    assert result.output == f"{why_not('silu-from-exp', rx.parse(PROGRAM), 'gv')}\n"


def test_options_are_those_of_optimize(program: Path, tmp_path: Path) -> None:
    rules = tmp_path / "my.egg"
    rules.write_text('(rewrite (R.cos (R.exp x)) x :name "mine")')

    fast = invoke("why-not", "sigmoid-from-powers", program, "--fast-math")
    mine = invoke("why-not", "mine", program, "--rules", rules)

    assert "fired once at gv" in fast.output
    assert mine.output == (
        f"rule mine ({rules}:1) cannot match: the program has no R.cos, and no rule makes one\n"
        "  at a of main: 1 of its 2 nodes match\n"
        "    (R.cos (R.exp x))\n"
        "    ^^^^^^^^^^^^^^^^^ the program has no cos at all\n"
        "    x = x: float32[n, 4]\n"
    )


def test_json_is_the_same_as_data(program: Path) -> None:
    result = invoke("why-not", "silu-from-exp", program, "--json")

    answer = why_not("silu-from-exp", rx.parse(PROGRAM))
    expected = {"file": str(program), **json.loads(json.dumps(answer.as_dict()))}
    assert json.loads(result.stdout) == expected


def test_an_onnx_model(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    nodes = [node("Exp", "x", "a"), node("Max", "a one", "y")]
    one = np.array(1, np.float32)
    proto = model(nodes, [value("x", ["n", 4])], [value("y", ["n", 4])], {"one": one})
    path.write_bytes(proto.SerializeToString())

    result = invoke("why-not", "relu-from-maximum", path)

    assert result.exit_code == 0
    assert "(= 0.0 (const-scalar zero))" in result.output
    assert "this is 1.0; needed is 0.0" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["silu-from-ex"], "no rule is named 'silu-from-ex'; did you mean silu-from-exp?"),
        (
            ["silu-from-exp", "--at", "other"],
            "no value of a dataflow block is named 'other'; there are a, b, gv",
        ),
    ],
)
def test_wrong_use_is_one_line(program: Path, arguments: list[str], message: str) -> None:
    rule, *options = arguments

    result = invoke("why-not", rule, program, *options)

    assert (result.exit_code, result.output) == (2, f"Error: {message}\n")


def test_a_model_without_dataflow_blocks(tmp_path: Path) -> None:
    path = tmp_path / "plain.py"
    path.write_text("@R.function\ndef main(x: R.Tensor((4,), 'float32')):\n    return x\n")

    result = invoke("why-not", "silu-from-exp", path)

    assert (result.exit_code, result.output) == (2, f"Error: {NO_BLOCK}\n")
