"""``show --svg``: pictures of the e-graph and of the kernels."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.support.command import invoke

PROGRAM = """\
@R.function
def main(x: R.Tensor(("n", 64), "float32"), w: R.Tensor((64, 64), "float32")):
    with R.dataflow():
        h = R.matmul(x, w)
        s = R.multiply(h, R.sigmoid(h))
        R.output(s)
    return s
"""
TEXT = "{http://www.w3.org/2000/svg}text"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def drawn(program: Path, *args: str) -> tuple[str, list[str | None]]:
    """What the command prints, and the texts of the picture."""
    picture = program.with_name("picture.svg")
    result = invoke("show", program, "--svg", picture, "--hint", "n=128", *args)
    assert result.exit_code == 0, result.output
    said = result.stdout.strip().removeprefix(f"{picture}: ")
    return said, [text.text for text in ElementTree.parse(picture).iter(TEXT)]


def test_the_egraph(program: Path) -> None:
    said, texts = drawn(program, "--stage", "egraph")

    assert said == texts[0] == "main: 5 classes, 6 nodes"
    assert "● R.nn.silu h" in texts
    assert "  R.multiply h lv" in texts


def test_the_classes_that_a_rule_touched(program: Path) -> None:
    said, texts = drawn(program, "--stage", "egraph", "--rule", "silu-from-sigmoid")

    assert said == "main: 1 of 5 classes, 6 nodes"
    assert texts[1] == "s"


def test_the_kernels(program: Path) -> None:
    said, texts = drawn(program, "--stage", "kernels")

    assert said == "main: 1 kernel or operator, 7.57 µs by the cost model"
    assert "  matmul → nn.silu" in texts


@pytest.mark.parametrize("args", [["--stage", "tir"], ["--stage", "egraph", "--json"]])
def test_other_stages_have_no_picture(program: Path, args: list[str]) -> None:
    picture = program.with_name("picture.svg")
    result = invoke("show", program, "--svg", picture, *args)

    assert result.exit_code == 2
    assert "--svg needs --stage egraph or kernels" in result.output
    assert not picture.exists()
