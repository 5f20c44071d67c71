"""The command relax-egraph."""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph.cli.model import FORMATS
from relax_egraph.cli.show import STAGES
from relax_egraph.extract import REFERENCE_PROFILE
from relax_egraph.lower.emit.target import host
from tests.support.command import invoke

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


@pytest.mark.parametrize(
    ("stage", "contains"),
    [
        ("relax", "R.multiply"),
        ("egraph", "R.ewise_fma"),
        ("kernels", "R.ewise_fma"),
        ("tir", "T.prim_func"),
        ("llvm", "define i32 @"),
        ("asm", "vfmadd" if "fma" in host().features else "ret"),
        ("bytecode", "call"),
    ],
)
def test_show_prints_every_stage(program: Path, stage: str, contains: str) -> None:
    result = invoke("show", program, "--stage", stage)

    assert result.exit_code == 0, result.output
    assert contains in result.output


def test_loops_are_shown_for_a_processor(program: Path) -> None:
    shown = [
        invoke("show", program, "--stage", "asm", "--target", name).output
        for name in ("x86-64-v3", "generic")
    ]
    unknown = invoke("show", program, "--stage", "tir", "--target", "haswel")
    elsewhere = invoke("show", program, "--stage", "kernels", "--target", "haswell")

    assert ["ymm" in text for text in shown] == [True, False]
    assert "did you mean 'haswell'?" in unknown.output
    assert "--target needs --stage tir, llvm or asm" in elsewhere.output


def test_assembly_has_what_kernels_call(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text("""\
@R.function
def main(x: R.Tensor(("n", 256), "float32"), w: R.Tensor((256, 256), "float32")):
    with R.dataflow():
        y = R.matmul(x, w)
        R.output(y)
    return y
""")

    llvm, asm = (invoke("show", path, "--stage", stage).output for stage in ("llvm", "asm"))

    called = re.findall(r"^declare [^@]*@(?!llvm)(\w+)", llvm, re.MULTILINE)
    assert called
    assert re.findall(r"^# (\w+)$", asm, re.MULTILINE) == ["matmul", *called]


def test_show_as_json_is_one_object(program: Path) -> None:
    result = invoke("show", program, "--json")

    module = rx.load_module(program)
    assert json.loads(result.stdout) == {
        "file": str(program),
        "stage": "relax",
        "text": module.script(),
    }


def test_optimize_writes_the_program_and_reports(program: Path, tmp_path: Path) -> None:
    output = tmp_path / "best.py"

    result = invoke("optimize", program, "-o", output, "--json")

    report = json.loads(result.stdout)
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


def test_a_program_that_does_not_read_is_status_1_with_the_place(tmp_path: Path) -> None:
    path = tmp_path / "bad.py"
    path.write_text(PROGRAM.replace("R.multiply", "R.multply"))

    result = invoke("show", path)

    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: {path}:4:15: unknown operator R.multply")


@pytest.mark.parametrize(
    "args",
    [
        ("show",),
        ("show", "no-such-file"),
        ("run", "no-such-file.onnx"),
        ("optimize", __file__),
        ("bench", __file__, "--threads", "0"),
        ("nonsense",),
    ],
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
    assert "no function 'nope' in the model" in result.output


def test_a_file_that_is_no_text_is_wrong_use(tmp_path: Path) -> None:
    path = tmp_path / "noise.py"
    path.write_bytes(bytes(range(256)))

    result = invoke("show", path)

    assert result.exit_code == 2
    needed = f"{FORMATS}, a program in script form, or an executable (.rxe)"
    assert f"is no text: needs {needed}" in result.output


@pytest.mark.parametrize("command", ["optimize", "run", "profile", "memory"])
def test_a_place_that_cannot_be_written_is_seen_before_the_work(
    program: Path, tmp_path: Path, command: str
) -> None:
    option = {"profile": "--trace", "memory": "--svg"}.get(command, "--output")
    path = tmp_path / "no" / "such" / "folder.npz"

    result = invoke(command, program, option, path)

    assert result.exit_code == 2
    assert f"there is no folder {path.parent}" in result.stderr


def test_the_stages_are_documented() -> None:
    text = (Path(__file__).parents[2] / "README.md").read_text("utf-8")

    assert all(stage in text for stage in STAGES)


def test_a_program_is_optimized_under_assumptions(tmp_path: Path) -> None:
    path, output = tmp_path / "program.py", tmp_path / "best.py"
    path.write_text("""\
@R.function
def main(x: R.Tensor(("n", "s"), "float32")):
    with R.dataflow():
        lv0 = R.reshape(x, R.shape([n, s // 8 * 8]))
        gv0 = R.exp(lv0)
        R.output(gv0)
    return gv0
""")

    result = invoke("optimize", path, "-o", output, "--assume", "s % 8 == 0", "--assume", "n>=1")

    assert result.exit_code == 0, result.output
    text = " ".join(output.read_text().split())
    assert "R.reshape" not in text
    assert "R.shape([s % 8]), R.Shape((0,)), " in text
    assert 'refusal="the dimension s is {s}, needs s % 8 == 0"' in text


def test_a_wrong_assumption_is_status_1_with_the_place(program: Path) -> None:
    result = invoke("optimize", program, "-o", "best.py", "--assume", "n>=1", "--assume", "n*n<4")

    assert result.exit_code == 1
    assert result.stderr.startswith("Error: assume[1]:1:1: a condition is on one symbol")


def test_rules_can_be_left_out(program: Path, tmp_path: Path) -> None:
    output = tmp_path / "best.py"

    result = invoke("optimize", program, "-o", output, "--json", "--without", "fma")

    assert "fma-from-add-multiply" not in json.loads(result.stdout)["rules"]
    assert "R.ewise_fma" not in output.read_text()


def test_what_is_left_out_must_exist(program: Path) -> None:
    result = invoke("optimize", program, "-o", "best.py", "--without", "fmaa")

    assert result.exit_code == 2
    assert "no family or rule is named 'fmaa'; did you mean fma?" in result.output


def test_the_vocabulary_is_printed() -> None:
    result = invoke("rules", "vocabulary", "R.permute_dims", "dim-ge")

    assert result.exit_code == 0, result.output
    assert "axes:Axes" in result.output
    assert "a:Dim b:Dim" in result.output
    assert "R.add" not in result.output


def test_the_whole_vocabulary_is_json() -> None:
    result = invoke("rules", "vocabulary", "--json")

    every = {entry["name"]: entry for entry in json.loads(result.stdout)}
    assert every["R.permute_dims"]["params"] == [
        {"name": "x", "sort": "Tensor"},
        {"name": "axes", "sort": "Axes"},
    ]
    assert {"R.concat", "R.split", "K.add", "DimMul", "shape-of", "dim-divides"} <= set(every)
    assert all(entry["meaning"] for entry in every.values())


def test_a_name_that_is_not_in_the_vocabulary_is_wrong_use() -> None:
    result = invoke("rules", "vocabulary", "permute_dims")

    assert result.exit_code == 2
    assert result.output == (
        "Error: there is no name 'permute_dims'; did you mean R.permute_dims?\n"
    )


def test_rules_are_listed_by_family() -> None:
    result = invoke("rules", "list", "--family", "fma", "--family", "dim", "--json")

    rules = json.loads(result.stdout)
    assert {rule["ruleset"] for rule in rules} == {"fma", "dim"}
    (found,) = [rule for rule in rules if rule["name"] == "fma-from-add-multiply"]
    assert found["float_class"] == "reassociates"
    assert found["place"].startswith("rules/fma.egg:")


def test_a_users_rules_are_listed_beside_the_book(tmp_path: Path) -> None:
    path = tmp_path / "my.egg"
    path.write_text('; twice is once\n(rewrite (R.abs (R.abs x)) (R.abs x) :name "abs-twice")\n')

    result = invoke("rules", "list", "--family", "my", "--rules", path)

    assert result.exit_code == 0, result.output
    assert "twice is once" in result.output


def test_a_family_that_is_not_there_is_wrong_use() -> None:
    result = invoke("rules", "list", "--family", "shapes")

    assert result.exit_code == 2
    assert result.output == "Error: there is no family 'shapes'; did you mean shape?\n"


EGRAPH = {
    "nodes": {
        "f": {"op": "f", "eclass": "A", "children": ["x"], "cost": 1},
        "g": {"op": "[g]", "eclass": "A", "children": [], "cost": 4},
        "x": {"op": "x", "eclass": "B", "children": [], "cost": 2},
    },
    "root_eclasses": ["A"],
}


@pytest.fixture
def egraph(tmp_path: Path) -> Path:
    path = tmp_path / "egraph.json"
    path.write_text(json.dumps(EGRAPH))
    return path


def test_an_egraph_is_extracted_as_json(egraph: Path) -> None:
    result = invoke("extract", egraph, "--json")

    told = json.loads(result.stdout)
    assert told.pop("seconds") >= 0
    assert told == {
        "file": str(egraph),
        "cost": 3,
        "bound": 3,
        "gap": 0,
        "status": "optimal",
        "nodes": 3,
        "classes": 2,
        "choice": {"B": "x", "A": "f"},
    }


def test_an_egraph_is_extracted_as_a_table(egraph: Path) -> None:
    egraph.write_text(egraph.read_text().replace('"cost": 2', '"cost": 9'))

    result = invoke("extract", egraph)

    assert result.exit_code == 0, result.output
    assert "│ A     │ g    │ [g]      │ 4    │" in result.output
    assert "cost 4, bound 4: optimal; 1 of 2 classes, 3 nodes" in result.output


@pytest.mark.parametrize("method", ["ilp", "greedy-dag", "tree"])
def test_egraphs_are_extracted_by_each_method(egraph: Path, method: str) -> None:
    result = invoke("extract", egraph, "--json", "--method", method, "--time-limit", 1)

    assert json.loads(result.stdout)["cost"] == 3


def test_a_folder_of_egraphs_is_extracted_whatever_fails(egraph: Path, tmp_path: Path) -> None:
    (tmp_path / "deeper").mkdir()
    (tmp_path / "deeper" / "bad.json").write_text('{"nodes": {}}')
    (tmp_path / "notes.txt").write_text("")

    result = invoke("extract", tmp_path, "--json-lines")

    bad, good = map(json.loads, result.output.splitlines())
    path = tmp_path / "deeper" / "bad.json"
    assert bad == {"file": str(path), "error": f"{path}: there is no 'root_eclasses'"}
    assert (good["file"], good["cost"]) == (str(egraph), 3)
    assert result.exit_code == 1


def test_an_egraph_that_does_not_read_is_status_1(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text('{"nodes": 1,}')

    result = invoke("extract", path)

    assert result.exit_code == 1
    column = 13 if sys.version_info < (3, 13) else 12  # since 3.13 it is that of the comma
    assert result.stderr.startswith(f"Error: {path}:1:{column}: no JSON: ")


@pytest.mark.parametrize("options", [[], ["--json"], ["--json", "--json-lines"]])
def test_a_folder_needs_json_lines(tmp_path: Path, options: list[str]) -> None:
    assert invoke("extract", tmp_path, *options).exit_code == 2


def test_the_search_for_the_optimum_takes_as_long_as_it_is_told(
    program: Path, tmp_path: Path
) -> None:
    output = tmp_path / "best.py"
    command = ("optimize", program, "-o", output, "--json", "--hint", "n=64", "--improve")

    at_once, longer = (json.loads(invoke(*command, seconds).output) for seconds in (0, 5))

    assert longer["status"] == ["optimal"]
    assert longer["cost"] <= at_once["cost"]
    assert "-1.0 is not in the range x>=0" in invoke(*command, -1).output


def test_programs_are_compared_at_the_hints_and_on_the_machine_that_are_named(
    program: Path, tmp_path: Path
) -> None:
    slow, output = tmp_path / "slow.json", tmp_path / "best.py"
    machine = REFERENCE_PROFILE
    replace(machine, launch=1.0).write(slow)
    hint = ("--hint", "n=1000000")

    here = invoke("optimize", program, "-o", output, *hint, "--json")
    there = invoke("optimize", program, "-o", output, *hint, "--machine", slow, "--json")

    cost, slower = (json.loads(r.output)["cost"] for r in (here, there))
    assert cost == rx.explain(rx.load_module(program), hints={"n": 1_000_000}).cost
    assert slower == pytest.approx(cost - machine.launch + 1.0)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (("--hint", "n"), "'n' is not of the form NAME=SIZE, such as n=128"),
        (("--machine", "nowhere.json"), "File 'nowhere.json' does not exist"),
        (("--variant", "n:3"), "'n:3' is not of the form SYMBOL=RANGES, such as s=1,2:64,65:"),
    ],
)
def test_options_that_do_not_read_are_refused(
    program: Path, tmp_path: Path, option: tuple[str, str], message: str
) -> None:
    output = tmp_path / "best.py"

    result = invoke("optimize", program, "-o", output, *option)

    assert result.exit_code != 0
    assert message in f"{result.output} {result.exception}"
    assert not output.exists()
