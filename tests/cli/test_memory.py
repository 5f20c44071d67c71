"""``relax-egraph memory``: tables, JSON and pictures of where tensors lie."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.support.command import invoke

PROGRAM = """\
@R.function
def main(x: R.Tensor(("n", 16), "float32"), w: R.Tensor((16, 16), "float32")):
    with R.dataflow():
        a = R.matmul(x, w)
        b = R.nn.softmax(a, axis=0)
        c = R.matmul(b, w)
        d = R.nn.softmax(c, axis=0)
        R.output(d)
    return d
"""
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def test_the_table_says_where_each_tensor_lies(program: Path) -> None:
    result = invoke("memory", program, "--size", "n=100")

    assert result.exit_code == 0, result.output
    rows = [
        [cell.strip() for cell in line.strip("│").split("│")]
        for line in result.output.splitlines()
        if line.startswith("│")
    ]
    assert rows[:4] == [
        ["a", "6,400", "0", "0", "1", "matmul", ""],
        ["b", "6,400", "0", "1", "2", "softmax", "a"],
        ["c", "6,400", "its own", "2", "3", "matmul", ""],
        ["d", "6,400", "its own", "3", "4", "softmax", "c"],
    ]
    assert rows[4:] == [
        ["arena", "6,400"],
        ["arena and what leaves the function", "12,800"],
        ["largest live set", "12,800"],
        ["without reuse", "25,600"],
        ["weights", "0"],
    ]


def test_without_sizes_bytes_are_over_symbols(program: Path) -> None:
    found = json.loads(invoke("memory", program, "--json").stdout)

    assert found["function"] == "main"
    assert (found["arena"], found["total"]) == ("n * 64", "n * 128")
    assert [(t["name"], t["offset"]) for t in found["tensors"]] == [
        ("a", 0),
        ("b", 0),
        ("c", 0),
        ("d", 0),
    ]


def test_the_picture_has_a_rectangle_for_each_tensor(program: Path, tmp_path: Path) -> None:
    file = tmp_path / "memory.svg"
    result = invoke("memory", program, "--size", "n=100", "--svg", file)

    assert result.exit_code == 0, result.output
    groups = ElementTree.parse(file).getroot().findall(f"{SVG}g")
    titles = [g.findtext(f"{SVG}title") for g in groups]
    assert titles == [
        "a: 6.25 KiB at 0, steps 0 to 1, computed by matmul",
        "b: 6.25 KiB at 0, steps 1 to 2, computed by softmax",
        "c: 6.25 KiB at 6,400, steps 2 to 3, computed by matmul",
        "d: 6.25 KiB at 6,400, steps 3 to 4, computed by softmax",
    ]
    assert [g.findtext(f"{SVG}text") for g in groups] == ["a", "b", "c", "d"]
    boxes = [
        [float(rect.attrib[k]) for k in ("x", "y", "width", "height")]
        for g in groups
        if (rect := g.find(f"{SVG}rect")) is not None
    ]
    assert boxes == [
        [96, 296, 144, 240],
        [240, 296, 144, 240],
        [288, 56, 144, 240],
        [432, 56, 144, 240],
    ]
    first = file.read_text()
    invoke("memory", program, "--size", "n=100", "--svg", file)
    assert file.read_text() == first


def test_a_picture_needs_sizes(program: Path, tmp_path: Path) -> None:
    result = invoke("memory", program, "--svg", tmp_path / "memory.svg")

    assert result.exit_code == 2
    assert "a picture has sizes in bytes: needs --size n=…" in result.output
    assert not (tmp_path / "memory.svg").exists()


def test_an_executable_has_no_plan(tmp_path: Path) -> None:
    file = tmp_path / "model.rxe"
    file.write_bytes(b"")

    result = invoke("memory", file)

    assert result.exit_code == 2
    assert "is an executable: needs a program, or an ONNX model" in result.output


def test_a_function_has_to_be_there(program: Path) -> None:
    result = invoke("memory", program, "--function", "other")

    assert result.exit_code == 2
    assert "no function 'other' in" in result.output
