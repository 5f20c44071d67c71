"""The sizes that estimates rest on, and that whatever shows an estimate says which are assumed."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import relax_egraph as rx
from relax_egraph.extract import Hints
from relax_egraph.ir import assumptions
from relax_egraph.optimize.sizes import Scenario, Sizing, assumed_text
from relax_egraph.optimize.variants import Case, Part
from tests.support.command import invoke

SUM = """
@R.function
def main(x: R.Tensor(("n", "m"), "float32"), y: R.Tensor(("n", "m"), "float32")):
    with R.dataflow():
        lv0 = R.multiply(x, y)
        gv0 = R.add(lv0, y)
        R.output(gv0)
    return gv0
"""
MODULE = rx.parse(SUM)
SMALL: Case = (Part("n", 2, 8),)


@pytest.mark.parametrize(
    ("hints", "assume", "bounds", "case", "sizes", "assumed"),
    [
        ({}, [], {}, (), {"n": 64, "m": 64}, {"n", "m"}),
        ({"n": 7}, [], {}, (), {"n": 7, "m": 64}, {"m"}),
        ({}, ["n <= 16"], {}, (), {"n": 4, "m": 64}, {"n", "m"}),
        ({}, ["n >= 100", "n <= 400"], {}, (), {"n": 200, "m": 64}, {"n", "m"}),
        ({}, ["n >= 100"], {}, (), {"n": 400, "m": 64}, {"n", "m"}),
        ({}, ["n % 48 == 0"], {}, (), {"n": 48, "m": 64}, {"n", "m"}),
        ({}, ["n == 5"], {}, (), {"n": 5, "m": 64}, {"m"}),
        ({}, ["n <= 1"], {}, (), {"n": 1, "m": 64}, {"m"}),
        ({"n": 7}, ["m == 2*n"], {}, (), {"n": 7, "m": 14}, set[str]()),
        ({}, ["m == 2*n"], {}, (), {"n": 64, "m": 128}, {"n", "m"}),
        ({}, [], {"n": 100}, (), {"n": 10, "m": 64}, {"n", "m"}),
        ({"m": 3}, [], {}, SMALL, {"n": 4, "m": 3}, {"n"}),
        ({"n": 3, "m": 3}, [], {}, SMALL, {"n": 3, "m": 3}, set[str]()),
        ({"n": 30, "m": 3}, [], {}, SMALL, {"n": 4, "m": 3}, {"n"}),
    ],
)
def test_a_size_is_the_hint_or_the_mean_of_what_it_may_be(
    hints: Hints, assume: list[str], bounds: dict[str, int], case: Case, sizes: Any, assumed: Any
) -> None:
    sizing = Sizing(hints, case, assumptions.parse(assume), bounds)

    assert sizing.scenarios({"n", "m"}) == (Scenario(1.0, sizes, frozenset(assumed)),)


def test_of_several_hints_those_in_the_case_are_taken() -> None:
    sizing = Sizing([(0.9, {"n": 1}), (0.1, {"n": 5})], SMALL)

    assert sizing.scenarios({"n"}) == (Scenario(0.1, {"n": 5}, frozenset()),)


@given(st.integers(0, 500), st.integers(1, 9), st.integers(0, 99), st.none() | st.integers(0, 99))
def test_an_assumed_size_is_one_that_may_be(
    least: int, step: int, more: int, bound: int | None
) -> None:
    most = least + more * step
    texts = [f"n >= {least}", f"n <= {most}", f"n % {step} == {least % step}"]
    sizing = Sizing({}, (), assumptions.parse(texts), {} if bound is None else {"n": bound})

    size = sizing.scenarios({"n"})[0].sizes["n"]

    assert least <= size <= most
    assert size % step == least % step


def test_sizes_are_written_with_the_word() -> None:
    assert assumed_text({"n": 64}) == "n = 64 (assumed)"
    assert assumed_text({"n": (64,), "m": (1, 11, 260)}) == (
        "n = 64 (assumed), m = 1, 11 or 260 (assumed)"
    )
    assert assumed_text({}) == ""


def test_reports_say_what_is_assumed() -> None:
    assert rx.explain(MODULE).assumed == {"m": (64,), "n": (64,)}
    assert rx.explain(MODULE, hints={"n": 7}).assumed == {"m": (64,)}
    assert rx.explain(MODULE, hints={"n": 7, "m": 1}).assumed == {}
    plans = rx.explain(MODULE, variants={"n": [(1, 1), (2, 8)]}, hints={"m": 3}).plans
    assert [(p.sizes, p.assumed) for p in plans] == [
        ("0 <= n <= 1", {}),
        ("2 <= n <= 8", {"n": 4}),
        ("n >= 9", {"n": 64}),
    ]


ESTIMATING = {
    "optimize": ("optimize", "MODEL", "-o", "OUT"),
    "report": ("optimize", "MODEL", "-o", "OUT", "--report"),
    "explain": ("explain", "MODEL", "--quick"),
    "why-not": ("why-not", "fma-from-add-multiply", "MODEL"),
    "bisect": ("bisect", "MODEL", "--metric", "cost"),
}
"""Commands that print estimates."""


@pytest.mark.parametrize("command", ESTIMATING)
def test_each_estimate_says_at_which_sizes(command: str, tmp_path: Path) -> None:
    model, output = tmp_path / "model.py", tmp_path / "best.py"
    model.write_text(SUM)
    places = {"MODEL": model, "OUT": output}
    words = [places.get(word, word) for word in ESTIMATING[command]]

    assumed = invoke(*words, "--hint", "m=3")
    text, data = assumed.stdout, json.loads(invoke(*words, "--hint", "m=3", "--json").stdout)
    hinted = invoke(*words, "--hint", "m=3", "--hint", "n=3")

    assert " at n = 64 (assumed)" in " ".join(text.split())
    assert data["assumed"] == {"n": [64]}
    assert assumed.stderr.endswith(
        "warning: programs were compared at n = 64 (assumed); set other sizes by --hint n=SIZE\n"
    )
    assert "assumed" not in hinted.output


@pytest.mark.parametrize("words", [("show", "--stage", "kernels"), ("memory",)], ids=" ".join)
def test_commands_without_an_estimate_say_where_programs_were_compared(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    model = tmp_path / "model.py"
    model.write_text(SUM)

    shown = invoke(words[0], model, *words[1:])

    assert shown.exit_code == 0
    assert "programs were compared at m = 64 (assumed), n = 64 (assumed)" in shown.stderr


@pytest.mark.parametrize("words", [("bench", "--seconds", "0"), ("profile",)], ids=" ".join)
def test_sizes_of_the_inputs_are_not_assumed(words: tuple[str, ...], tmp_path: Path) -> None:
    model = tmp_path / "model.py"
    model.write_text(SUM)

    shown = invoke(words[0], model, *words[1:], "--size", "n=2", "--size", "m=2")

    assert shown.exit_code == 0
    assert "assumed" not in shown.output


def test_the_page_says_what_is_assumed() -> None:
    assert "n = 64 (assumed)" in rx.explain(MODULE).page(quick=True)
    assert "(assumed)" not in rx.explain(MODULE, hints={"n": 1, "m": 1}).page(quick=True)


def test_what_is_returned_prints_in_few_lines() -> None:
    reasons = rx.explain(MODULE, hints={"n": 1, "m": 1})
    machine = rx.VirtualMachine(rx.build(reasons.module), engine="interpreter")

    assert str(machine) == "<VirtualMachine of main(x, y); engine: interpreter>"
    assert repr(reasons).startswith("<Reasons: 3.20 µs → 1.6")
    assert "before and after: what each kernel computes" in str(reasons)
    assert len(str(reasons).splitlines()) < 100


def test_an_output_that_may_mean_either_is_asked_about(tmp_path: Path) -> None:
    model = tmp_path / "model.py"
    model.write_text(SUM)

    said = invoke("optimize", model, "-o", tmp_path / "net.so")

    assert said.exit_code == 2
    hint = "unknown suffix: use .rxe for an executable, or .py for the program as text"
    assert said.stderr.splitlines()[-1] == f"Error: {tmp_path / 'net.so'}: {hint}"
