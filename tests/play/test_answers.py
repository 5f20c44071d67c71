"""What a tab is answered: data for the program and the rules that it has."""

from typing import Any

import pytest

from relax_egraph.play.answers import answer
from relax_egraph.play.asked import Asked, Kind, Unreadable, asked
from relax_egraph.play.examples import Example, examples

FIRST = examples()[0]

WRONG_SHAPE = '(rewrite (R.cos x) (R.sum x (vec-of 0) false) :name "cos-is-sum")'

NESTED = FIRST.rules + '\n(rewrite (R.cosh2 x) x :name "unknown")\n'


def of(example: Example, kind: Kind = "result", **more: Any) -> dict[str, Any]:
    return answer(Asked(kind, example.program, example.rules, **more))


def own(result: dict[str, Any]) -> dict[str, int]:
    """The matches of the rules of the text."""
    matches = {rule["rule"]: rule["matches"] for rule in result["rules"]}
    return {one["rule"]: matches.get(one["rule"], 0) for one in result["own"]}


def test_there_are_ten_examples_each_with_a_title_and_a_text() -> None:
    assert len({e.title for e in examples() if e.text}) == 10


@pytest.mark.parametrize("example", examples(), ids=lambda e: e.name)
def test_every_rule_of_an_example_fires_and_its_steps_lead_to_the_program(example: Example) -> None:
    result, steps = of(example), of(example, "steps")

    assert result["mistakes"] == steps["mistakes"] == []
    assert own(result)
    assert min(own(result).values()) > 0
    (graph,) = steps["egraphs"]
    added = {effect["rule"] for step in graph["steps"] for effect in step["effects"]}
    assert set(own(result)) - added <= {"cos-even", "abs-even"}  # they deduce facts
    last = graph["steps"][-1]["classes"]
    kernels = {c["kernel"] for c in last if any(node["chosen"] for node in c["nodes"])}
    assert kernels == {kernel["kernel"] for kernel in result["kernels"]}


@pytest.mark.parametrize("example", examples(), ids=lambda e: e.name)
def test_the_rules_of_examples_are_sound_but_for_the_one_that_is_wrong(example: Example) -> None:
    verdicts = {name: of(example, "check", rule=name)["is_wrong"] for name in own(of(example))}

    assert verdicts == {name: name == "root-is-operand" for name in verdicts}


def test_the_first_example_is_one_kernel_by_its_rule() -> None:
    result = of(FIRST)

    (kernel,) = result["kernels"]
    assert (kernel["calls"], kernel["operators"]) == ("fused_cos_ewise_fma", ["cos", "ewise_fma"])
    assert kernel["replaces"] == ["minus", "wave", "scaled", "result"]
    assert 0 < kernel["seconds"] == result["cost"] < result["cost_before"]
    assert result["stops"] == [{"function": "main", "stop": "saturated"}]
    assert result["own"] == [{"rule": "cos-is-even", "start": 34, "end": len(FIRST.rules) - 1}]


def test_the_steps_of_the_first_example_say_what_its_rule_added() -> None:
    (graph,) = of(FIRST, "steps", alone=True)["egraphs"]

    begin, after = graph["steps"]
    assert begin["effects"] == []
    assert [e["rule"] for e in after["effects"]] == ["cos-is-even"]
    assert after["effects"][0] == {"rule": "cos-is-even", "matches": 1, "nodes": 1, "unions": 1}
    (wave,) = [c for c in after["classes"] if c["names"] == ["wave"]]
    x = next(c["class"] for c in after["classes"] if c["nodes"][0]["text"] == "x")
    assert wave["type"] == "(n, 64) float32"
    assert wave["nodes"][0] == {
        "text": "R.cos",
        "classes": [x],
        "rule": "cos-is-even",
        "step": 1,
        "chosen": True,
    }
    assert [node["rule"] for node in wave["nodes"]] == ["cos-is-even", ""]


def test_mistakes_have_places_in_both_texts() -> None:
    program = FIRST.program.replace("R.cos(minus)", "R.cos(mines)")

    wrong = answer(Asked("result", program, NESTED))["mistakes"]

    assert [(m["text"], m["line"], m["message"].split("\n")[0]) for m in wrong] == [
        ("program", 8, "undefined variable mines"),
        ("rules", 5, "unknown operator R.cosh2"),
    ]
    assert program[wrong[0]["start"] : wrong[0]["end"]] == "mines"
    assert NESTED[wrong[1]["start"] : wrong[1]["end"]] == "R.cosh2"
    assert wrong[1]["better"] == "R.cosh"


def test_a_run_that_a_rule_makes_fail_is_a_mistake_of_the_rule() -> None:
    rules = f"{FIRST.rules}\n{WRONG_SHAPE}\n"

    (wrong,) = answer(Asked("result", FIRST.program, rules))["mistakes"]

    assert (wrong["text"], wrong["line"]) == ("rules", 5)
    assert wrong["message"].startswith("rule cos-is-sum (rules.egg:5:1) is unsound")


def test_a_check_answers_with_a_counterexample() -> None:
    found = of(examples()[1], "check", rule="root-is-operand")

    assert (found["words"], found["is_wrong"]) == ("not sound", True)
    assert "left is 1.0, right is -1.0" in found["text"]


def test_a_proof_finds_what_no_instance_shows() -> None:
    example = examples()[6]
    guard = ' (dim-ge (vec-get s 0) (DimSym "1"))'
    asked = Asked("prove", example.program, example.rules.replace(guard, ""), rule="sum-of-product")

    assert guard in example.rules
    assert answer(asked)["words"] == "refuted"
    assert of(example, "prove", rule="sum-of-product")["words"] == "proven"


def test_a_rule_that_is_not_there_has_no_verdict() -> None:
    assert of(FIRST, "check", rule="other")["text"] == "there is no rule named 'other'"


def test_why_not_is_asked_at_a_value() -> None:
    found = of(FIRST, "why-not", rule="cos-is-even", at="scaled")

    assert "cos-is-even (rules.egg:3)" in found["text"]
    assert "at scaled" in found["text"]
    wrong = of(FIRST, "why-not", rule="cos-is-even", at="nothing")["mistakes"]
    assert "no value of a dataflow block is named 'nothing'" in wrong[0]["message"]


@pytest.mark.parametrize(
    ("stage", "first"),
    [
        ("tir", "@I.ir_module"),
        ("llvm", "; fused_cos_ewise_fma"),
        ("asm", "# fused_cos_ewise_fma"),
    ],
)
def test_code_is_that_of_show(stage: str, first: str) -> None:
    assert of(FIRST, "code", stage=stage)["text"].splitlines()[0] == first


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "a request is an object"),
        ({"kind": "result", "program": ""}, "needs rules"),
        (
            {"kind": "run", "program": "", "rules": ""},
            "kind is one of result, steps, check, prove, why-not, code",
        ),
        ({"kind": "result", "program": 1, "rules": ""}, "program is of another type"),
    ],
)
def test_other_requests_are_refused(data: object, message: str) -> None:
    with pytest.raises(Unreadable, match=message):
        asked(data, "rules.egg", "")


def test_a_request_names_no_file() -> None:
    data = {"kind": "result", "program": "", "rules": "", "model": "/etc/passwd", "file": "x"}

    assert asked(data, "rules.egg", "") == Asked("result", "", "")
