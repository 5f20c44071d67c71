"""The command relax-egraph on an ONNX model: from the file to arrays, times and machine code."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import relax_egraph as rx
from relax_egraph.cli import commands
from relax_egraph.cli.bench import difference
from relax_egraph.cli.show import STAGES
from tests.support.command import invoke
from tests.support.onnx_models import model, node, value

COMMANDS = ("show", "optimize", "run", "bench", "profile", "memory")
"""Those that take a model."""

WEIGHT = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A model of one input, of an extent that is a symbol, and two outputs."""
    path = tmp_path / "model.onnx"
    nodes = [
        node("MatMul", "x w", "h"),
        node("Relu", "h", "y"),
        node("ReduceMax", "y", "top", keepdims=0),
    ]
    outputs = [value("y", ["n", 4]), value("top", [])]
    proto = model(nodes, [value("x", ["n", 8])], outputs, {"w": WEIGHT})
    path.write_bytes(proto.SerializeToString())
    return path


TWO_FUNCTIONS = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 8), "float32")):
        return R.nn.relu(x)

    @R.function
    def other(x: R.Tensor(("k", 8), "float32")):
        with R.dataflow():
            y = R.exp(x)
            R.output(y)
        return y
"""


def save_input(folder: Path, shape: tuple[int, ...] = (3, 8)) -> tuple[Any, str]:
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    np.save(folder / "x.npy", x)
    return x, f"x={folder / 'x.npy'}"


def test_a_model_is_run_on_a_file_and_its_results_are_saved(path: Path, tmp_path: Path) -> None:
    (x, given), out = save_input(tmp_path), tmp_path / "out.npz"

    result = invoke("run", path, "--input", given, "-o", out)

    assert (result.exit_code, result.output) == (0, "")
    y = np.maximum(x @ WEIGHT, 0)
    with np.load(out) as saved:
        assert saved.files == ["arr_0", "arr_1"]
        np.testing.assert_allclose(saved["arr_0"], y, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(saved["arr_1"], y.max(), rtol=1e-5)


def test_a_model_is_run_on_random_arrays_which_is_said(path: Path) -> None:
    first, again = (invoke("run", path, "--size", "n=2") for _ in "ab")

    assert first.exit_code == 0
    assert first.stderr == "random: x\n"
    assert first.stdout == again.stdout
    assert first.stdout.startswith("0: float32[2, 4]\n[[")
    assert "\n1: float32[]\n" in first.stdout


@pytest.mark.parametrize(
    ("given", "hints"),
    [
        (("run", "--size", "n=2"), {"n": 2}),
        (("profile", "--size", "n=2"), {"n": 2}),
        (("bench", "--size", "n=2", "--seconds", 0), {"n": 2}),
        (("bench", "--size", "n=2", "--seconds", 0, "--hint", "n=9"), {"n": 9}),
    ],
)
def test_programs_are_compared_at_the_sizes_of_the_arguments(
    path: Path, monkeypatch: pytest.MonkeyPatch, given: tuple[Any, ...], hints: dict[str, int]
) -> None:
    seen: list[Any] = []
    optimized = rx.explain

    def explain(module: rx.IRModule, **how: Any) -> Any:
        seen.append(how)
        return optimized(module, **how)

    monkeypatch.setattr(rx, "explain", explain)
    command, *rest = given

    result = invoke(command, path, *rest)

    assert result.exit_code == 0
    assert "assumed" not in result.stderr
    assert seen == [{"hints": hints}]


def test_a_size_that_no_argument_says_is_assumed(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(TWO_FUNCTIONS, "utf-8")
    x, given = save_input(tmp_path)

    result = invoke("run", program, "--input", given)

    warning = (
        "warning: programs were compared at k = 64 (assumed); set other sizes by --hint k=SIZE\n"
    )
    assert (result.exit_code, result.stderr) == (0, warning)
    assert result.stdout == f"{np.maximum(x, 0)}\n"


def test_results_are_json(path: Path) -> None:
    told = json.loads(invoke("run", path, "--size", "n=1", "--json").stdout)

    y, top = told.pop("result")
    assert told == {"file": str(path), "function": "main", "random": ["x"]}
    assert (y["shape"], y["dtype"], top["shape"]) == ([1, 4], "float32", [])
    assert max(y["data"][0]) == top["data"]


def test_several_results_are_no_npy(path: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.npy"

    result = invoke("run", path, "--size", "n=2", "-o", out)

    assert result.exit_code == 2
    assert "the results are 2 arrays: needs --output out.npz" in result.stderr
    assert not out.exists()


def test_a_model_becomes_an_executable_which_gives_the_same(path: Path, tmp_path: Path) -> None:
    executable = tmp_path / "model.rxe"

    made = invoke("optimize", path, "-o", executable, "--hint", "n=128", "--report")
    runs = [invoke("run", file, "--size", "n=5") for file in (path, executable)]

    assert made.exit_code == 0, made.output
    assert "what fired" in made.stdout
    assert made.stdout.splitlines()[-1].startswith(f"{executable}: ")
    assert runs[0].stdout == runs[1].stdout


def test_an_executable_is_not_optimized_again(path: Path, tmp_path: Path) -> None:
    executable = tmp_path / "model.rxe"
    invoke("optimize", path, "-o", executable)

    results = [
        invoke("bench", executable, "--size", "n=2", "--hint", "n=2"),
        invoke("memory", executable),
        invoke("show", executable, "--stage", "tir"),
        invoke("run", executable, "--size", "n=2", "--shape", "x=2,8"),
    ]

    assert [result.exit_code for result in results] == [2, 2, 2, 2]


def test_onnx_is_not_written(path: Path, tmp_path: Path) -> None:
    result = invoke("optimize", path, "-o", tmp_path / "out.onnx")

    assert result.exit_code == 2
    assert "cannot write ONNX models" in result.stderr


def test_the_shape_of_an_input_is_given(path: Path) -> None:
    fixed = invoke("run", path, "--shape", "x=2,8", "--json")
    other = invoke("show", path, "--shape", "x=batch,8")

    assert json.loads(fixed.stdout)["result"][0]["shape"] == [2, 4]
    assert 'x: R.Tensor(("batch", 8), "float32")' in other.stdout


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_of_a_model_is_shown(path: Path, stage: str) -> None:
    told = json.loads(invoke("show", path, "--stage", stage, "--json").stdout)

    if stage == "egraph":
        assert "K.nn.relu" in {node["op"] for node in told["nodes"].values()}
        return
    assert (told["file"], told["stage"]) == (str(path), stage)
    contains = {"tir": "T.prim_func", "llvm": "define", "asm": ".globl"}
    assert contains.get(stage, "main") in told["text"]


def test_time_and_memory_of_a_model_are_told(path: Path) -> None:
    profile = json.loads(invoke("profile", path, "--size", "n=4", "--json").stdout)
    memory = json.loads(invoke("memory", path, "--size", "n=4", "--json").stdout)

    assert "float32[4, 8]" in {array for call in profile["calls"] for array in call["arrays"]}
    assert memory["total"] >= 4 * 4 * 4 + 4


# --- bench ------------------------------------------------------------------------------------


def test_a_model_is_measured(path: Path) -> None:
    told = json.loads(invoke("bench", path, "--size", "n=4", "--seconds", 0, "--json").stdout)

    seconds = told.pop("seconds")
    assert 0 < seconds["relax-egraph"]["least"] <= seconds["relax-egraph"]["median"]
    arguments = {"x": "float32[4, 8]"}
    assert told == {"file": str(path), "threads": 1, "arguments": arguments, "error": None}


class Session:
    """What onnxruntime has of this name, which computes as the reference of ONNX does."""

    off = 0.0

    def __init__(self, path: str, options: Any, providers: list[str]) -> None:
        assert (options.intra_op_num_threads, providers) == (1, ["CPUExecutionProvider"])
        self._model = ReferenceEvaluator(path)

    def get_inputs(self) -> list[Any]:
        return [SimpleNamespace(name=name) for name in self._model.input_names]

    def run(self, names: None, feeds: dict[str, Any]) -> list[Any]:
        y, top = map(np.asarray, self._model.run(names, feeds))
        return [y, top + np.float32(self.off)]


@pytest.fixture
def onnxruntime(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A package of this name with what is needed of it."""
    package = SimpleNamespace(InferenceSession=Session, SessionOptions=SimpleNamespace)
    monkeypatch.setitem(sys.modules, "onnxruntime", package)
    return monkeypatch


@pytest.mark.usefixtures("onnxruntime")
def test_a_model_is_measured_beside_another_system(path: Path) -> None:
    args = ("bench", path, "--size", "n=4", "--seconds", 0, "--vs", "onnxruntime")

    printed, told = invoke(*args), json.loads(invoke(*args, "--json").stdout)

    assert printed.exit_code == 0, printed.output
    assert " of the time of onnxruntime; outputs differ by at most " in printed.stdout
    assert set(told["seconds"]) == {"relax-egraph", "onnxruntime"}
    assert told["error"] < 1e-5


def test_outputs_that_differ_are_status_1(path: Path, onnxruntime: pytest.MonkeyPatch) -> None:
    onnxruntime.setattr(Session, "off", 0.5)
    args = ("bench", path, "--size", "n=4", "--seconds", 0, "--vs", "onnxruntime")

    refused, allowed = invoke(*args), invoke(*args, "--within", 1)

    assert (refused.exit_code, refused.stdout, allowed.exit_code) == (1, "", 0)
    beginning = "Error: output 1 (float32[]), beside onnxruntime: differs by "
    assert refused.stderr.startswith(beginning)
    assert refused.stderr.endswith(" of the largest magnitude, allowed are 0.0001\n")


def test_a_system_that_is_not_installed_is_wrong_use(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)

    result = invoke("bench", path, "--size", "n=4", "--vs", "onnxruntime")

    assert result.exit_code == 2
    needed = "--vs onnxruntime needs the package onnxruntime: pip install onnxruntime"
    assert result.stderr == f"Error: {needed}\n"


@pytest.mark.usefixtures("onnxruntime")
def test_other_systems_run_onnx_alone(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("")

    result = invoke("bench", program, "--vs", "onnxruntime")

    assert result.exit_code == 2
    assert "--vs onnxruntime needs an ONNX model (.onnx)" in result.stderr


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ([1.0, 2.0], [1.0, 4.0], 0.5),
        ([np.nan, 2.0], [np.nan, 2.0], 0.0),
        ([np.inf, 2.0], [1.0, 2.0], np.inf),
        ([1.0, 2.0], [np.nan, 2.0], np.inf),
        ([0.5, 0.0], [0.0, 0.0], 0.5),
        ([], [], 0.0),
    ],
)
def test_a_difference_is_relative_to_the_largest_magnitude(
    ours: list[float], theirs: list[float], expected: float
) -> None:
    assert difference(np.array(ours), np.array(theirs)) == expected


# --- what is wrong ----------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_a_model_that_does_not_read_is_status_1(command: str, tmp_path: Path) -> None:
    path = tmp_path / "noise.onnx"
    path.write_bytes(b"no model")
    output = ("-o", tmp_path / "out.rxe") if command == "optimize" else ()

    result = invoke(command, path, *output)

    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: {path}")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("args", [("run",), ("show", "--stage", "bytecode"), ("profile",)])
def test_an_executable_that_does_not_read_is_status_1(
    args: tuple[str, ...], tmp_path: Path
) -> None:
    path = tmp_path / "noise.rxe"
    path.write_bytes(b"no executable")

    result = invoke(*args, path)

    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: {path}")


def test_nodes_without_counterpart_are_status_1(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    proto = model([node("Foo", "x", "y", domain="own")], [value("x", [2])], [value("y", [2])])
    onnx.save(proto, path)

    result = invoke("show", path)

    assert result.exit_code == 1
    assert result.stderr.startswith(
        f"Error: {path}: the model has a node that cannot be converted:\n"
    )


def test_onnx_that_is_not_installed_is_status_2(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    for name in [n for n in sys.modules if n.startswith("relax_egraph.frontends.onnx")]:
        monkeypatch.delitem(sys.modules, name)

    result = invoke("show", path)

    assert result.exit_code == 2
    needed = "from_onnx needs the package onnx: pip install 'relax-egraph[onnx]'"
    assert result.stderr == f"Error: {needed}\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--shape", "x=2,"), "'x=2,' is not of the form NAME=EXTENTS, such as x=1,n,224"),
        (("--size", "n=-1"), "'n=-1' is not of the form NAME=SIZE, such as n=128"),
        (("--size", "n=" + "9" * 5000), "is not of the form NAME=SIZE, such as n=128"),
        (("--size", "m=2"), "main has no symbol m; it has n"),
        (("--size", "n=" + "9" * 17), "parameter x of R.Tensor((n, 8), "),
        (("--size", "n=" + "9" * 12), "is too large at these sizes"),
        (("--input", "x=no.npy"), "no.npy: No such file or directory"),
        (("--input", "x"), "'x' is not of the form NAME=FILE.npy, such as x=x.npy"),
        (("-o", "out.txt"), "out.txt: needs .npy or .npz"),
        ((), "the size of n is unknown: use --size n=128"),
    ],
)
def test_what_is_given_wrongly_is_status_2(
    path: Path, options: tuple[str, ...], message: str
) -> None:
    result = invoke("run", path, *options)

    assert result.exit_code == 2
    assert message in result.stderr


def test_an_input_that_is_not_in_the_model_is_status_1(path: Path) -> None:
    result = invoke("show", path, "--shape", "z=2,8")

    assert result.exit_code == 1
    assert result.stderr == f"Error: {path}: the model has no input 'z'; it has: x\n"


def test_an_array_that_does_not_fit_is_status_1(path: Path, tmp_path: Path) -> None:
    _, given = save_input(tmp_path, (3, 7))

    result = invoke("run", path, "--input", given)

    assert result.exit_code == 1
    assert result.stderr.startswith("Error: ")
    assert "x" in result.stderr


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY\x01\x00", b"PK\x03\x04"])
def test_a_file_that_is_no_array_is_status_2(path: Path, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.npy").write_bytes(content)

    result = invoke("run", path, "--input", f"x={tmp_path / 'x.npy'}")

    assert result.exit_code == 2
    assert f"{tmp_path / 'x.npy'}: " in result.stderr


# --- the whole --------------------------------------------------------------------------------


def test_versions_and_the_processor_are_told() -> None:
    lines = invoke("--version").stdout.splitlines()

    told = dict(line.split(maxsplit=1) for line in lines)
    assert list(told) == [
        *("relax-egraph", "python", "numpy", "egglog", "llvmlite", "sympy", "highspy", "onnx"),
        *("torch", "jax", "z3-solver", "ray"),
        *("system", "processor", "caches", "features"),
    ]
    assert told["numpy"] == np.__version__


@pytest.mark.parametrize("command", COMMANDS)
def test_options_have_the_same_name_and_meaning_everywhere(command: str) -> None:
    text = invoke(command, "--help").stdout

    assert "[OPTIONS] MODEL" in text
    for option in ("--shape NAME=EXTENTS", "--json", "-h, --help"):
        assert option in text


def test_the_help_of_every_command_is_whole_sentences() -> None:
    context = click.Context(commands)
    for name in commands.list_commands(context):
        command = commands.get_command(context, name)
        assert command
        text = invoke("--help").stdout
        assert f"  {name}" in text
        assert "..." not in text.replace("[ARGS]...", "")
        for param in command.params:
            if "--help" not in param.opts and param.param_type_name == "option":
                assert getattr(param, "help", ""), f"{name} {param.opts}"
