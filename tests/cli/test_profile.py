"""The command relax-egraph profile."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

import relax_egraph as rx
from relax_egraph.cli.random_inputs import random_input
from relax_egraph.errors import RunError
from relax_egraph.extract import REFERENCE_PROFILE
from tests.support.command import invoke

PROGRAM = """\
@R.function
def main(x: R.Tensor(("n", "k"), "float32"), w: R.Tensor(("k", 4), "float32")):
    with R.dataflow():
        lv0 = R.matmul(x, w)
        gv0 = R.nn.relu(lv0)
        R.output(gv0)
    return gv0
"""


@pytest.fixture(params=["program.py", "program.rxe"])
def program(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / request.param
    if path.suffix == ".rxe":
        rx.build(rx.optimize(rx.parse(PROGRAM))).save(path)
    else:
        path.write_text(PROGRAM)
    return path


def profile(*args: object) -> Result:
    return invoke("profile", *args)


def test_arguments_are_random_of_the_sizes_that_are_given(program: Path) -> None:
    result = profile(program, "--size", "n=3", "--size", "k=8", "--repeat", 2, "--json")

    report = json.loads(result.stdout)
    (kernel,) = [c for c in report["calls"] if c["kind"] == "kernel"]
    assert result.exit_code == 0
    assert (report["file"], report["function"], report["repeat"]) == (str(program), "main", 2)
    assert kernel["arrays"] == ["float32[3, 8]", "float32[8, 4]", "float32[3, 4]"]
    assert kernel["operations"] == 2 * 3 * 8 * 4 + 3 * 4
    assert kernel["share"] is None


def test_arguments_come_from_files_and_a_trace_goes_to_one(program: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((2, 5), np.float32))
    trace, machine = tmp_path / "trace.json", tmp_path / "machine.json"
    REFERENCE_PROFILE.write(machine)
    given = ("--input", f"x={tmp_path / 'x.npy'}", "--size", "k=5")

    result = profile(program, *given, "--trace", trace, "--machine", machine)

    events = json.loads(trace.read_text())["traceEvents"]
    assert result.exit_code == 0, result.output
    assert "GFLOP/s" in result.output
    assert {"function", "kernel", "builtin"} == {e["cat"] for e in events if e["ph"] == "X"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--size", "n=3"), "the size of k is unknown: use --size k=128"),
        (("--size", "n"), "'n' is not of the form NAME=SIZE, such as n=128"),
        (("--input", "y=x.npy"), "x.npy: No such file"),
        (("--size", "m=3"), "main has no symbol m; it has n, k"),
        (("--function", "other"), "no function 'other' in"),
        (("--repeat", "0"), "0 is not in the range x>=1"),
    ],
)
def test_what_is_missing_or_wrong_is_said(
    program: Path, options: tuple[str, ...], message: str
) -> None:
    result = profile(program, *options)

    assert result.exit_code != 0
    assert message in f"{result.output} {result.exception}"


def test_a_parameter_that_is_not_there_is_no_input(program: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "y.npy", np.ones(2))

    result = profile(program, "--input", f"y={tmp_path / 'y.npy'}")

    assert result.exit_code == 2
    assert "main has no parameter y; it has x, w" in result.output


def test_random_inputs_are_of_what_the_parameter_takes() -> None:
    sizes = {"n": 3, "m": 2}

    x = random_input("x", 'R.Tensor((n, m * 4, min(n, m)), "float32")', sizes)
    again = random_input("x", 'R.Tensor((n, m * 4, min(n, m)), "float32")', sizes)
    ids, half = random_input(
        "t", 'R.Tuple(R.Tensor((n,), "int64"), R.Tensor((), "float16"))', sizes
    )

    assert (x.shape, x.dtype) == ((3, 8, 2), np.float32)
    np.testing.assert_array_equal(x, again)
    assert set(ids.tolist()) <= {0, 1}
    assert (ids.shape, ids.dtype, half.shape, half.dtype) == ((3,), np.int64, (), np.float16)
    assert random_input("s", "R.Shape((n, 4))", sizes) == (3, 4)
    assert random_input("p", "R.Prim(value=n)", sizes) == 3


@pytest.mark.parametrize(
    ("info", "taken"),
    [
        ("", "any object"),
        ('R.Tensor(dtype="float32", ndim=2)', 'R.Tensor(dtype="float32", ndim=2)'),
        ('R.Prim("float32")', 'R.Prim("float32")'),
    ],
)
def test_what_is_left_open_has_to_be_given(info: str, taken: str) -> None:
    with pytest.raises(RunError) as error:
        random_input("x", info, {})

    assert str(error.value) == f"parameter x takes {taken}: use --input"
