"""The command relax-egraph."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import relax_egraph as rx
from relax_egraph.cli import STAGES, commands, main

PROGRAM = """\
@R.function
def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("n", 4), "float32")):
    with R.dataflow():
        lv0 = R.multiply(x, y)
        gv0 = R.add(lv0, y)
        R.output(gv0)
    return gv0
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def invoke(*args: object) -> Result:
    return CliRunner().invoke(commands, [str(a) for a in args])


@pytest.mark.parametrize(
    ("stage", "contains"),
    [
        ("relax", "R.multiply"),
        ("egraph", "R.ewise_fma"),
        ("kernels", "R.ewise_fma"),
        ("tir", "T.prim_func"),
        ("llvm", "define void @"),
        ("bytecode", "call"),
    ],
)
def test_show_prints_every_stage(program: Path, stage: str, contains: str) -> None:
    result = invoke("show", program, "--stage", stage)

    assert result.exit_code == 0, result.output
    assert contains in result.output


def test_show_as_json_is_one_object(program: Path) -> None:
    result = invoke("show", program, "--json")

    module = rx.load_module(program)
    assert json.loads(result.output) == {
        "file": str(program),
        "stage": "relax",
        "text": module.script(),
    }


def test_optimize_writes_the_program_and_reports(program: Path, tmp_path: Path) -> None:
    output = tmp_path / "best.py"

    result = invoke("optimize", program, "-o", output, "--json")

    report = json.loads(result.output)
    assert report["rules"]["fma-from-add-multiply"] >= 1
    assert report["gap"] == 0
    assert "R.ewise_fma(x, y, y)" in output.read_text()


def test_an_executable_is_written_and_run(program: Path, tmp_path: Path) -> None:
    executable, out = tmp_path / "best.rxe", tmp_path / "out.npy"
    x, y = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)

    made = invoke("optimize", program, "-o", executable)
    inputs = [a for k in "xy" for a in ("--input", f"{k}={tmp_path / k}.npy")]
    result = invoke("run", executable, *inputs, "-o", out)

    assert (made.exit_code, result.exit_code) == (0, 0), made.output + result.output
    np.testing.assert_allclose(np.load(out), x * y + y, rtol=1e-6)


def test_a_program_that_does_not_read_is_status_1_with_the_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.py"
    path.write_text(PROGRAM.replace("R.multiply", "R.multply"))

    with pytest.raises(SystemExit) as stop:
        main(["show", str(path)])

    assert stop.value.code == 1
    assert capsys.readouterr().err.startswith(f"error: {path}:4:15: unknown operator R.multply")


@pytest.mark.parametrize(
    "args", [("show",), ("show", "no-such-file"), ("optimize", __file__), ("nonsense",)]
)
def test_wrong_use_is_status_2(args: tuple[str, ...]) -> None:
    assert invoke(*args).exit_code == 2


def test_an_input_of_the_wrong_form_is_wrong_use(program: Path) -> None:
    result = invoke("run", program, "--input", "x")

    assert result.exit_code == 2
    assert "'x' is not of the form NAME=FILE.npy" in result.output


def test_a_function_that_is_not_there_is_wrong_use(program: Path) -> None:
    result = invoke("run", program, "--function", "nope")

    assert result.exit_code == 2
    assert f"no function 'nope' in {program}" in result.output


def test_a_file_that_is_no_text_is_wrong_use(tmp_path: Path) -> None:
    path = tmp_path / "noise.py"
    path.write_bytes(bytes(range(256)))

    result = invoke("show", path)

    assert result.exit_code == 2
    assert "is no text: needs a program in script form, or an executable (.rxe)" in result.output


def test_a_place_that_cannot_be_written_is_status_1(
    program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["optimize", str(program), "-o", str(tmp_path / "no" / "such" / "folder.py")])

    assert stop.value.code == 1
    assert "No such file or directory" in capsys.readouterr().err


def test_the_stages_are_documented() -> None:
    text = (Path(__file__).parents[1] / "README.md").read_text("utf-8")

    assert all(stage in text for stage in STAGES)
