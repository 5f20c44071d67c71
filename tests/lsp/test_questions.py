"""What a lens above a rule answers."""

from pathlib import Path

import onnx

from relax_egraph.authoring.questions import Kind, Question, answer
from tests.support.onnx_models import model, node, value

RULES = """\
; cos(-x) = cos(x)
; float: exact
(rewrite (R.cos (R.negative x)) (R.cos x) :name "cos-is-even")

; sin(-x) = sin(x), which is wrong
; float: exact
(rewrite (R.sin (R.negative x)) (R.sin x) :name "sin-is-even")
"""


def asked(kind: Kind, rule: str, *folders: Path) -> Question:
    return Question(kind, rule, "my.egg", RULES, folders=tuple(map(str, folders)))


def test_a_check_says_on_how_many_instances_or_what_differs() -> None:
    even, odd = answer(asked("check", "cos-is-even")), answer(asked("check", "sin-is-even"))

    assert (even.words.partition(" in ")[0], even.is_wrong) == ("exact", False)
    assert (odd.words, odd.is_wrong) == ("unsound", True)
    assert "right  (R.sin x)" in odd.text


def test_a_proof_says_of_which_ranks() -> None:
    proof = answer(asked("prove", "cos-is-even"))

    assert (proof.words, proof.is_wrong) == ("not proven", False)
    assert "cos" in proof.text


def test_models_in_the_folder_are_tried(tmp_path: Path) -> None:
    x = [value("x", ["n"])]
    cosine = model([node("Neg", "x", "y"), node("Cos", "y", "z")], x, [value("z", ["n"])])
    onnx.save(cosine, tmp_path / "even.onnx")
    onnx.save(model([node("Abs", "x", "y")], x, [value("y", ["n"])]), tmp_path / "other.onnx")
    (tmp_path / "damaged.onnx").write_bytes(b"no model")

    found = answer(asked("fires", "cos-is-even", tmp_path))

    assert found.words == "fires in 1 of 3 models"
    assert [line.rpartition("/")[2].partition(": ")[::2] for line in found.text.splitlines()] == [
        ("damaged.onnx", "the model is malformed: no field can begin at byte 0"),
        ("even.onnx", "1 match"),
        ("other.onnx", "0 matches"),
    ]


def test_a_folder_without_models_is_said(tmp_path: Path) -> None:
    found = answer(asked("fires", "cos-is-even", tmp_path))

    assert found.words == "no models"


def test_an_error_is_an_answer() -> None:
    broken = Question("check", "cos-is-even", "my.egg", RULES.replace("(R.cos x)", "(R.cso x)"))

    assert answer(broken).text.startswith("my.egg:3:33: unknown operator R.cso")
