"""Why an optimized module is what it is: what runs, what it was, and which rules made it."""

import json
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import Any, cast

import pytest
from rich.console import Console

import relax_egraph as rx
from bench.transformer import Sizes, encoder
from relax_egraph.errors import ProofError
from relax_egraph.ir.expr import Call, Var
from relax_egraph.ir.walk import bindings_of
from relax_egraph.optimize.explanation import Explanation
from relax_egraph.reasons import explain as explaining
from relax_egraph.reasons.definitions import bindings_in, lines_of
from relax_egraph.reasons.explain import Reasons, explain
from relax_egraph.reasons.text import text_of
from relax_egraph.rules import FAMILIES
from tests.support.random_programs import random_program

GOLDEN = Path(__file__).parent / "explain"

DENSE = """\
@R.function
def main(x: R.Tensor(("n", 64), "float32"), w: R.Tensor((64, 64), "float32"),
         b: R.Tensor((64,), "float32"), v: R.Tensor((64, 64), "float32")):
    with R.dataflow():
        h = R.matmul(x, w)
        hb = R.add(h, b)
        act = R.nn.relu(hb)
        twice = R.nn.relu(act)
        y = R.matmul(x, v)
        z = R.add(twice, y)
        same = R.add(z, R.const(0.0, "float32"))
        out = R.nn.softmax(same, axis=0)
        R.output(out)
    return out
"""


def small(body: str, params: str = 'x: R.Tensor(("n", 8), "float32")') -> rx.IRModule:
    """A function of one block with the bindings of `body`, the last the output."""
    lines = [line.strip() for line in body.strip().splitlines()]
    out = lines[-1].split(" = ")[0]
    bindings = "".join(f"        {line}\n" for line in lines)
    return rx.parse(
        f"@R.function\ndef main({params}):\n    with R.dataflow():\n{bindings}"
        f"        R.output({out})\n    return {out}\n"
    )


def stands_for(reasons: Reasons) -> dict[str, list[str]]:
    """By the variable that a kernel writes, the operators of the source that it stands for."""
    return {one.variable.name: [v.name for v in one.replaces] for one in reasons.running}


@pytest.fixture(scope="module")
def dense() -> Reasons:
    return explain(rx.parse(DENSE))


def test_the_result_is_what_optimize_returns(dense: Reasons) -> None:
    assert isinstance(dense, Explanation)
    assert dense.module.script() == rx.optimize(rx.parse(DENSE)).script()


def test_a_kernel_stands_for_the_operators_between_what_it_reads_and_writes(dense: Reasons) -> None:
    assert stands_for(dense) == {
        "act": ["h", "hb", "act", "twice"],
        "z": ["y", "z", "same"],
        "out": ["out"],
    }


def test_chains_are_the_rules_that_made_each_kernel(dense: Reasons) -> None:
    rules = dict(zip((one.variable.name for one in dense.running), dense.chains, strict=True))

    assert "relu-twice" in rules["act"]
    assert "add-zero" in {*rules["z"], *rules["out"]}
    assert "relu-twice" not in rules["z"]


def test_every_output_has_a_trace(dense: Reasons) -> None:
    assert [(trace.function, trace.output) for trace in dense.traces] == [("main", "out")]


def test_rules_make_nodes(dense: Reasons) -> None:
    assert dense.new_nodes["add-commutes"] > 0
    assert dense.new_nodes["relu-twice"] == 0


def test_a_gain_is_what_the_program_costs_more_without_a_rule(dense: Reasons) -> None:
    worth = {gain.rule.name: gain for gain in dense.gains}

    assert worth["load-of-store"].cost == pytest.approx(
        rx.explain(rx.parse(DENSE), without=["load-of-store"]).cost
    )
    assert worth["load-of-store"].share > 0.5


def test_costs_of_kernels_sum_to_that_of_the_program(dense: Reasons) -> None:
    assert all(seconds is not None for seconds in dense.seconds)
    assert sum(seconds or 0.0 for seconds in dense.seconds) == pytest.approx(dense.cost)


def test_figures_are_whole(request: pytest.FixtureRequest) -> None:
    """By two families alone, so that other rules may come and go."""
    others = [family for family in FAMILIES if family not in ("canon", "fusion")]
    found = without_times(explain(rx.parse(DENSE), without=others).figures())
    figures = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
    path = GOLDEN / "dense.json"

    if request.config.getoption("--bless"):
        path.write_text(figures, "utf-8")
    assert figures == path.read_text("utf-8")


def without_times(figures: Any) -> Any:
    """`figures` but for seconds that were measured; costs are the same anywhere, to 9 digits."""
    match figures:
        case list():
            return [without_times(each) for each in cast(list[Any], figures)]
        case float():
            return float(f"{figures:.9g}")
        case dict():
            told = cast(dict[str, Any], figures)
            measured = {"seconds"} if "kernel" not in told else set[str]()
            return {k: None if k in measured else without_times(v) for k, v in told.items()}
        case _:
            return figures


def test_text_fits_a_hundred_columns(dense: Reasons) -> None:
    out = StringIO()

    Console(file=out, width=100).print(text_of(dense.figures()))

    text = out.getvalue()
    assert max(map(len, text.splitlines())) <= 100
    for said in ("act = R.nn.relu(hb)", "fused_matmul_add_relu", "relu-twice", "saturated"):
        assert said in text


def test_weights_are_written_by_their_numbers() -> None:
    out = StringIO()

    figures = explain(encoder(Sizes(layers=1))).figures(quick=True)
    Console(file=out, width=100).print(text_of(figures))

    assert "const[0]" in out.getvalue()
    assert "metadata" not in out.getvalue()


def test_what_rules_invented_stands_for_what_it_is_of() -> None:
    """Projections by several weights are one product, which no value of the source is."""
    reasons = explain(encoder(Sizes(layers=1)))

    merged, *_ = (one for one in reasons.running if one.callee == "fused_matmul_add")
    attention = next(one for one in reasons.running if "nn.attention" in one.operators)
    products = [v for v in merged.replaces if _calls(v, reasons.source, "matmul")]
    assert len(products) >= 3
    assert set(merged.replaces) == set(attention.replaces)


def _calls(var: Var, module: rx.IRModule, operator: str) -> bool:
    """Whether the source binds a variable of that name to a call of `operator`."""
    (function,) = (f for _, f in module.relax_functions())
    values = {b.var.name: b.value for b in bindings_of(function.body)}
    value = values[var.name]
    return isinstance(value, Call) and str(value.op) == f"R.{operator}"


FATES = """
a = R.add(x, R.const(0.0, "float32"))
b = R.exp(a)
c = R.exp(x)
e = R.negative(x)
k = R.add(R.const(2.0, "float32"), R.const(1.0, "float32"))
s = R.add(b, c)
f = R.multiply(s, k)
"""


def test_a_line_says_what_computes_it_or_what_became_of_it() -> None:
    figures = explain(small(FATES)).figures(quick=True)

    lines = {line["name"]: line for line in figures["before"] if line["name"]}
    assert {name: line["kernels"] for name, line in lines.items()} == {
        **{name: [0] for name in "abcksf"},
        "e": [],
    }
    assert lines["e"]["fate"] == "not needed, or computed before"


def test_an_input_may_be_all_that_is_left() -> None:
    reasons = explain(small("a = R.add(x, R.const(0.0, 'float32'))\nb = R.exp(a)\nc = R.add(a, x)"))

    assert stands_for(reasons)["c"] == ["a", "c"]


def test_variants_are_each_linked_to_the_source() -> None:
    reasons = explain(rx.parse(DENSE), variants={"n": [(1, 1), (2, 64)]})

    functions = {one.function for one in reasons.running}
    assert len(functions) > 1
    for function in functions:
        here = [one for one in reasons.running if one.function == function]
        assert {v.name for one in here for v in one.replaces} == {
            *("h", "hb", "act", "twice", "y", "z", "same", "out")
        }
    assert len(reasons.chains) == len(reasons.running)


def test_what_is_quick_computes_nothing_again(
    dense: Reasons, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise AssertionError("this takes long")

    monkeypatch.setattr(explaining, "prove", refused)
    monkeypatch.setattr(explaining, "gains", refused)
    reasons = explain(rx.parse(DENSE))

    figures = reasons.figures(quick=True)

    assert set(figures["missing"]) == {"proofs", "gains"}
    assert {kernel["rules"] is None for kernel in figures["kernels"]} == {True}
    page = reasons._repr_html_()  # pyright: ignore[reportPrivateUsage]
    assert page is not None
    assert "srcdoc=" in page


def test_a_proof_that_fails_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object, **__: object) -> None:
        raise ProofError("main, output out: no rule that was recorded leads to it")

    monkeypatch.setattr(explaining, "prove", failing)
    reasons = explain(rx.parse(DENSE))

    figures = reasons.figures()

    assert figures["traces"] == []
    assert "no rule that was recorded" in figures["missing"]["proofs"]
    assert "no rule that was recorded" in reasons.page()
    with pytest.raises(ProofError):
        _ = reasons.chains
    with pytest.raises(ProofError):
        explain(rx.parse(DENSE), proof=True)


def test_lines_of_text_say_what_they_define() -> None:
    module = rx.parse(DENSE)

    named = [(line.name, line.variable) for line in lines_of(module) if line.variable]

    function = dict(module.relax_functions())["main"]
    variables = [*function.params, *(b.var for b in bindings_of(function.body))]
    assert named == [(v.name, v) for v in variables]


def test_a_definition_of_several_lines_is_one() -> None:
    long = ", ".join(["1"] * 40)
    module = small(f"y = R.broadcast_to(x, R.shape([{long}, n, 8]))\nz = R.nn.relu(y)")

    lines = {line.name: line.text for line in lines_of(module) if line.name in ("y", "z")}

    assert "\n" in lines["y"]
    assert lines["y"].count("(") == lines["y"].count(")")
    assert lines["z"].lstrip().startswith("z: ")


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_are_explained(seed: int) -> None:
    module = random_program(seed).module
    reasons = explain(module)

    figures = reasons.figures(quick=True)

    assert len(figures["kernels"]) == len(reasons.running)
    assert all(kernel["replaces"] for kernel in figures["kernels"]), stands_for(reasons)
    texts = "\n".join(line["text"] for line in figures["before"])
    assert texts.splitlines() == module.script().splitlines()
    after: Mapping[str, Any] = dict(reasons.module.relax_functions())
    for one in reasons.running:
        assert one.variable in {b.var for b in bindings_in(after[one.function])}
