"""``show --stage egraph``: text that file tests take, and JSON that ``extract`` reads."""

import json
import re
from pathlib import Path

import pytest

import relax_egraph as rx
from relax_egraph.egraph.recording.case_run import case_run
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.forms import Source
from relax_egraph.extract import extract_egraph
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

ALL_KINDS = """\
@R.function
def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 6), "float32")):
    with R.dataflow():
        a = R.nn.softmax(R.matmul(x, w), axis=-1)
        b = R.split(R.reshape(a, R.shape([n * 2, 3])), 3, axis=1)
        c = R.concat((b[0], R.multiply(b[1], R.const(2.0, "float32"))), axis=1)
        d = R.strided_slice(R.sum(c, axis=[1], keepdims=True), [0], [0], [1], [1])
        gv = R.clip(R.astype(d, "float64"), R.prim_value(0.0), R.prim_value(1.0))
        R.output(gv)
    return gv
"""
"""Operands that are tensors, tuples, shapes and numbers; attributes of every kind."""

LINE = re.compile(r"(\$\d+): .*?  (\(.*?)(?:  ; .*)?")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def printed(path: Path, *args: str) -> list[str]:
    return invoke("show", path, "--stage", "egraph", "--hint", "n=64", *args).output.splitlines()


def test_classes_are_printed_one_a_line(program: Path) -> None:
    assert printed(program) == [
        "; main: roots $0",
        '$0: R.Tensor((n, 4), "float32")  '
        "(R.add $4 $3)  (K.store $1)  (K.store $2)  (R.ewise_fma $5 $3 $3)",
        '$1: R.Tensor((n, 4), "float32")  (K.add $7 $6)',
        '$2: R.Tensor((n, 4), "float32")  (K.ewise_fma $8 $6 $6)',
        '$3: R.Tensor((n, 4), "float32")  (Leaf 1)  ; y',
        '$4: R.Tensor((n, 4), "float32")  (R.multiply $5 $3)  (K.store $7)',
        '$5: R.Tensor((n, 4), "float32")  (Leaf 0)  ; x',
        '$6: R.Tensor((n, 4), "float32")  (K.load $3)',
        '$7: R.Tensor((n, 4), "float32")  (K.multiply $8 $6)  (K.load $4)',
        '$8: R.Tensor((n, 4), "float32")  (K.load $5)',
    ]


@pytest.mark.parametrize("text", [PROGRAM, ALL_KINDS], ids=["fma", "all-kinds"])
def test_what_is_printed_can_stand_in_a_file_test(text: str, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(text)
    waiting = {m[1]: m[2].split("  ") for line in printed(path) if (m := LINE.fullmatch(line))}

    case, made = list[str](), set[str]()
    while len(made) < len(waiting):
        ready = [
            (name, node)
            for name, nodes in waiting.items()
            for node in nodes
            if name not in made and made.issuperset(re.findall(r"\$\d+", node))
        ]
        name, node = ready[0]
        case.append(f"(let {name} {node})")
        made.add(name)
    case += [f"(union {name} {node})" for name, nodes in waiting.items() for node in nodes]
    case += [f"(check (= {name} {nodes[-1]}))" for name, nodes in waiting.items()]

    with case_run(RuleBook.default(families=()), Source("case.egg", "\n".join(case))) as run:
        assert run.faults == []


def test_the_classes_that_a_rule_touched_are_printed(program: Path) -> None:
    assert printed(program, "--rule", "fma-from-add-multiply") == [
        "; main: roots $0",
        "; fma-from-add-multiply touched 1 of 9 classes",
        '$0: R.Tensor((n, 4), "float32")  '
        "(R.add $4 $3)  (K.store $1)  (K.store $2)  (R.ewise_fma $5 $3 $3)",
    ]
    assert printed(program, "--rule", "exp-of-negative") == [
        "; main: roots $0",
        "; exp-of-negative touched 0 of 9 classes",
    ]


def test_a_rule_that_is_not_there_is_refused_with_similar_names(program: Path) -> None:
    result = invoke("show", program, "--stage", "egraph", "--rule", "fma-from-add")

    assert result.exit_code == 2
    assert "there is no rule 'fma-from-add'; similar: fma-from-add-multiply" in result.stderr


@pytest.mark.parametrize("args", [("--stage", "tir"), ("--stage", "egraph", "--json")])
def test_rules_are_of_the_text_of_the_e_graph(program: Path, args: tuple[str, ...]) -> None:
    result = invoke("show", program, "--rule", "fma-from-add-multiply", *args)

    assert result.exit_code == 2
    assert "--rule needs --stage egraph, without --json" in result.stderr


@pytest.mark.parametrize("text", [PROGRAM, ALL_KINDS], ids=["fma", "all-kinds"])
def test_extract_reads_what_show_writes_and_finds_as_good_a_program(
    text: str, tmp_path: Path
) -> None:
    path, file = tmp_path / "program.py", tmp_path / "egraph.json"
    path.write_text(text)

    shown = invoke("show", path, "--stage", "egraph", "--hint", "n=64", "--json")
    file.write_text(shown.stdout)
    extracted = json.loads(invoke("extract", file, "--json").stdout)

    best = rx.explain(rx.load_module(path), hints={"n": 64})
    assert extracted["status"] == "optimal"
    assert best.cost / 2 < extracted["cost"] < best.cost * 1.1
    assert extracted["choice"].keys() >= set(json.loads(shown.stdout)["root_eclasses"])


def test_the_program_that_extract_finds_is_the_fused_one() -> None:
    document = rx.explain(rx.parse(PROGRAM), hints={"n": 64}).egraph_document()

    found = extract_egraph(document)

    operators = [document["nodes"][key]["op"] for key in found.choice.values()]
    assert operators == ["Leaf 1", "K.load", "Leaf 0", "K.load", "K.ewise_fma", "K.store"]
    assert document["class_data"]["0.0"] == {"type": 'R.Tensor((n, 4), "float32")'}
