"""One plan per range of sizes: which there are, that the right one runs, and what is refused."""

import json
import re
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph.egraph.engine import Saturated, saturate
from relax_egraph.egraph.view import View
from relax_egraph.errors import RunError
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.ir.well_formed import assert_well_formed
from relax_egraph.optimize.variants import Variants
from relax_egraph.script.printer import print_with_constants
from tests.support.command import invoke

RNG = np.random.default_rng(0)
W1 = RNG.normal(size=(128, 16)).astype(np.float32)
W2 = RNG.normal(size=(16, 128)).astype(np.float32)

LOW_RANK = rx.parse(
    """
@R.function
def main(x: R.Tensor(("s", 128), "float32")):
    with R.dataflow():
        lv0 = R.matmul(x, metadata["relax.expr.Constant"][0])
        gv0 = R.matmul(lv0, metadata["relax.expr.Constant"][1])
        R.output(gv0)
    return gv0
""",
    constants=[W1, W2],
)
"""x·W1·W2: for few rows one product with W1·W2 is the faster way, for many rows two small ones."""

THREE: Variants = {"s": [(1, 1), (2, 64), (65, None)]}


def rows(s: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(s).normal(size=(s, 128)).astype(np.float32)


def functions(module: rx.IRModule) -> list[str]:
    return [n for n, f in module.relax_functions() if not f.attrs.get("primitive")]


def products(module: rx.IRModule, name: str) -> int:
    """How many matrices function `name` multiplies with."""
    return rx.IRModule({name: module[name]}).script().count("matmul")


FOLDED = """
@R.function
def main(x: R.Tensor(("s", 128), "float32")):
    with R.dataflow():
        lv0 = R.exp(metadata["relax.expr.Constant"][0])
        lv1 = R.matmul(x, lv0)
        lv2 = R.matmul(lv1, R.permute_dims(lv0))
        gv0 = R.add(lv2, R.sum(lv0))
        R.output(gv0)
    return gv0
"""


# --- which plans there are -----------------------------------------------------------------


def test_ranges_of_different_plans_have_a_function_each() -> None:
    best = rx.optimize(LOW_RANK, variants=THREE)

    assert functions(best) == ["main_s_0_64", "main_s_65_up", "main"]
    assert products(best, "main_s_0_64") == 1
    assert products(best, "main_s_65_up") == 2
    assert best["main"].struct_info == LOW_RANK["main"].struct_info


def test_the_entry_compares_sizes_and_calls() -> None:
    best = rx.optimize(LOW_RANK, variants=THREE)

    script = rx.IRModule({"main": best["main"]}).script()
    assert [line.strip() for line in script.splitlines()[5:]] == [
        "cls = Module",
        'small: R.Tensor((), "bool") = R.prim_less_equal(R.prim_value(s), R.prim_value(64))',
        "if small:",
        'gv2: R.Tensor((s, 128), "float32") = cls.main_s_0_64(x)',
        "else:",
        'gv2: R.Tensor((s, 128), "float32") = cls.main_s_65_up(x)',
        "return gv2",
    ]


def test_what_is_printed_reads_back(tmp_path: Path) -> None:
    best = rx.optimize(LOW_RANK, variants=THREE)

    assert_well_formed(best)
    rx.save_module(best, tmp_path / "best.relax")
    assert_structural_equal(rx.load_module(tmp_path / "best.relax"), best)


@pytest.mark.parametrize("ranges", [[(1, 1), (2, 64)], [(0, 8)], [(2, 2), (7, 12), (13, 15)]])
def test_ranges_of_equal_plans_are_one(ranges: list[tuple[int, int | None]]) -> None:
    without = rx.optimize(LOW_RANK, hints={"s": 2})

    assert_structural_equal(rx.optimize(LOW_RANK, hints={"s": 2}, variants={"s": ranges}), without)


def test_a_hint_in_a_range_is_where_it_is_compared() -> None:
    one_range: Variants = {"s": [(1, 1000)]}

    assert products(rx.optimize(LOW_RANK, hints={"s": 4}, variants=one_range), "main") == 1
    assert products(rx.optimize(LOW_RANK, hints={"s": 900}, variants=one_range), "main") == 2


def test_scenarios_are_those_in_the_range() -> None:
    few_and_many = [(1.0, {"s": 4}), (100.0, {"s": 900})]

    best = rx.optimize(LOW_RANK, hints=few_and_many, variants={"s": [(0, 8), (9, None)]})

    assert functions(best) == ["main_s_0_8", "main_s_9_up", "main"]


def test_sizes_in_no_range_have_the_plan_for_the_hints() -> None:
    best = rx.optimize(LOW_RANK, hints={"s": 900}, variants={"s": [(2, 3), (5, 6)]})

    assert functions(best) == ["main_s_0_1", "main_s_2_3", "main"]
    assert products(best, "main_s_0_1") == 2
    assert products(best, "main_s_2_3") == 1


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        (THREE["s"], {1: "0_64", 2: "0_64", 64: "0_64", 65: "65_up", 999: "65_up"}),
        ([(2, 3), (5, 6)], {1: "0_1", 2: "2_3", 3: "2_3", 4: "0_1", 6: "2_3", 7: "0_1"}),
    ],
)
def test_the_entry_picks_by_the_size(
    ranges: list[tuple[int, int | None]], expected: dict[int, str]
) -> None:
    best = rx.optimize(LOW_RANK, hints={"s": 900}, variants={"s": ranges})

    assert {s: picked(best, s) for s in expected} == expected


def picked(module: rx.IRModule, s: int) -> str:
    """The plan that ``main`` calls for `s` rows: each is replaced by one that gives its number."""
    names = [name for name in functions(module) if name != "main"]
    stubs = "".join(
        f"""
@R.function(private=True)
def {name}(x: R.Tensor(("s", 128), "float32")) -> R.Tensor(("s", 128), "float32"):
    gv = R.full(R.shape([s, 128]), R.const({number}.0), dtype="float32")
    return gv
"""
        for number, name in enumerate(names)
    )
    stubbed = rx.IRModule({**module.functions, **rx.parse(stubs).functions})
    result = evaluate(stubbed, "main", rows(s))
    assert isinstance(result, np.ndarray)
    return names[int(result[0, 0])].removeprefix("main_s_")


# --- what they compute ---------------------------------------------------------------------

BORDERS = (0, 1, 2, 63, 64, 65, 66, 130)


@pytest.mark.parametrize("saved", [False, True])
def test_every_size_is_computed(saved: bool, tmp_path: Path) -> None:
    executable = rx.build(rx.optimize(LOW_RANK, variants=THREE))
    if saved:
        executable.save(tmp_path / "best.rxe")
        executable = rx.load(tmp_path / "best.rxe")
    main = rx.VirtualMachine(executable)["main"]

    for s in BORDERS:
        np.testing.assert_allclose(main(rows(s)), rows(s) @ W1 @ W2, rtol=1e-4, atol=1e-4)


TWO = rx.parse(
    """
@R.function
def main(x: R.Tensor(("n", "s", 32), "float32"), y: R.Tensor(("n",), "float32")):
    with R.dataflow():
        lv0 = R.matmul(x, metadata["relax.expr.Constant"][0])
        lv1 = R.matmul(lv0, metadata["relax.expr.Constant"][1])
        lv2 = R.sum(R.multiply(lv1, R.exp(lv1)), axis=[1])
        gv0 = R.multiply(lv2, R.expand_dims(y, axis=[1]))
        R.output(gv0)
    return gv0
""",
    constants=[W1[:32, :4] / 10, W2[:4, :32] / 10],
)


def drawn(random: Random) -> list[tuple[int, int | None]]:
    """Up to three ranges, some open, some with sizes in between."""
    ends = sorted(random.sample((0, 1, 2, 3, 5, 8, 9, 20, 21, 300), 2 * random.randint(1, 3)))
    ranges: list[tuple[int, int | None]] = list(zip(ends[::2], ends[1::2], strict=True))
    if random.random() < 0.5:
        ranges[-1] = (ranges[-1][0], None)
    return ranges


@pytest.mark.parametrize("seed", range(8))
def test_any_ranges_compute_the_same(seed: int) -> None:
    random = Random(seed)
    symbols = random.sample(("n", "s"), random.randint(1, 2))
    variants = {name: drawn(random) for name in symbols}

    best = rx.optimize(TWO, variants=variants)

    assert_well_formed(best)
    text, constants = print_with_constants(best)
    assert_structural_equal(rx.parse(text, constants=constants), best)
    ends = {end for ranges in variants.values() for pair in ranges for end in pair}
    sizes = [
        0,
        1,
        *(e + d for e in ends if e is not None and e < 50 for d in (-1, 0, 1) if e + d > 0),
    ]
    for _ in range(8):
        n, s = random.choice(sizes), random.choice(sizes)
        rng = np.random.default_rng(seed)
        x, y = rng.normal(size=(n, s, 32)), rng.normal(size=n)
        args = x.astype(np.float32), y.astype(np.float32)
        expected, found = (evaluate(module, "main", *args) for module in (TWO, best))
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_several_symbols_have_the_product_of_their_ranges() -> None:
    variants: Variants = {"s": [(1, 1), (2, None)], "n": [(0, 4), (5, None)]}

    report = rx.explain(TWO, variants=variants)

    assert [plan.sizes for plan in report.plans] == [
        "0 <= s <= 1, 0 <= n <= 4",
        "0 <= s <= 1, n >= 5",
        "s >= 2, 0 <= n <= 4",
        "s >= 2, n >= 5",
    ]


PAIR = """
@R.function(pure=False)
def main(x: R.Tensor(("s", 128), "float32"), size: R.Shape(("k",))):
    y = cls.inner(x)
    z = cls.other(x)
    with R.dataflow():
        lv0 = R.matmul(x, metadata["relax.expr.Constant"][0])
        gv0 = R.matmul(lv0, metadata["relax.expr.Constant"][1])
        gv1 = R.zeros(R.shape([k, s]), "float32")
        R.output(gv0, gv1)
    return (y, gv0, gv1, z)

@R.function
def inner(x: R.Tensor(("s", 128), "float32")):
    with R.dataflow():
        lv0 = R.matmul(x, metadata["relax.expr.Constant"][0])
        gv0 = R.matmul(lv0, metadata["relax.expr.Constant"][1])
        R.output(gv0)
    return gv0

@R.function
def other(x: R.Tensor(("rows", 128), "float32")):
    gv0 = R.exp(x)
    return gv0
"""


def test_each_function_with_the_symbol_picks_for_itself() -> None:
    module = rx.parse(PAIR, constants=[W1, W2])

    best = rx.optimize(module, variants={**THREE, "k": [(0, 3), (4, None)]})

    assert_well_formed(best)
    assert [n for n in functions(best) if n.startswith("inner")] == [
        "inner_s_0_64",
        "inner_s_65_up",
        "inner",
    ]
    assert "other_s_0_64" not in functions(best)
    main = rx.VirtualMachine(rx.build(best))["main"]
    for s in (1, 64, 65):
        expected = evaluate(module, "main", rows(s), (7,))
        for found, value in zip(main(rows(s), (7,)), expected, strict=True):
            np.testing.assert_allclose(found, value, rtol=1e-4, atol=1e-4)


def test_what_is_assumed_is_checked_once() -> None:
    best = rx.optimize(LOW_RANK, variants=THREE, assume=["s >= 2"])

    assert best.script().count("match_cast") == 1
    with pytest.raises(RunError, match="the dimension s is 1, needs 2 or more"):
        evaluate(best, "main", rows(1))


def test_names_of_plans_are_new() -> None:
    script = (
        LOW_RANK.script()
        + """
    @R.function
    def main_s_0_64(x: R.Tensor((1,), "float32")):
        return x
"""
    )
    best = rx.optimize(rx.parse(script, constants=[W1, W2]), variants=THREE)

    assert functions(best)[:2] == ["main_s_0_641", "main_s_65_up"]


# --- what is shared ------------------------------------------------------------------------


def test_all_plans_are_of_one_saturation(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[View] = []

    def counted(view: View, *more: Any) -> Saturated:
        runs.append(view)
        return saturate(view, *more)

    monkeypatch.setenv("RELAX_EGRAPH_CACHE", "off")
    monkeypatch.setattr(import_module("relax_egraph.optimize.regions"), "saturate", counted)
    rx.optimize(LOW_RANK, variants=THREE)

    assert len(runs) == 1


def test_regions_without_the_symbol_are_extracted_once() -> None:
    report = rx.explain(rx.parse(PAIR, constants=[W1, W2]), variants={"k": [(1, 1), (2, None)]})

    first, second = report.plans
    assert [a is b for a, b in zip(first.regions, second.regions, strict=True)] == [
        False,
        True,
        True,
    ]


def test_constants_are_stored_once() -> None:
    module = rx.parse(FOLDED, constants=[W1])
    best = rx.optimize(module, variants=THREE)
    assert len(functions(best)) == 3

    stored = [c for c in rx.build(best).constants if isinstance(c, np.ndarray)]

    assert len({(c.shape, c.tobytes()) for c in stored}) == len(stored)


# --- reports and refusals ------------------------------------------------------------------


def test_the_report_has_the_cost_of_each_plan() -> None:
    report = rx.explain(LOW_RANK, variants=THREE)
    alone = [rx.explain(LOW_RANK, hints={"s": s}) for s in (1, 11, 260)]

    assert [p.sizes for p in report.plans] == ["0 <= s <= 1", "2 <= s <= 64", "s >= 65"]
    assert [p.cost for p in report.plans] == [one.cost for one in alone]
    assert report.cost == pytest.approx(sum(one.cost for one in alone) / 3)
    assert report.rules == alone[0].rules
    assert [p["sizes"] for p in report.as_dict()["plans"]] == [p.sizes for p in report.plans]


@pytest.mark.parametrize(
    ("variants", "message"),
    [
        (
            {"q": [(1, 1)]},
            "variants of q: no parameter has it alone as a dimension; symbols are: s",
        ),
        ({"s": []}, "variants of s: there are no ranges"),
        ({"s": [(-1, 4)]}, "variants of s: (-1, 4) is no range: a size is not negative"),
        ({"s": [(5, 4)]}, "variants of s: (5, 4) is no range: it ends before it begins"),
        (
            {"s": [4]},
            "variants of s: 4 is no range: needs a pair of sizes, such as (2, 64) or (65, None)",
        ),
        ({"s": [(1, 8), (8, 9)]}, "variants of s: (8, 9) overlaps (1, 8), or precedes it"),
        ({"s": [(9, 12), (1, 2)]}, "variants of s: (1, 2) overlaps (9, 12), or precedes it"),
        (
            {"s": [(1, None), (70, 80)]},
            "variants of s: (70, 80) overlaps (1, None), or precedes it",
        ),
        (
            {"s": [(k, k) for k in range(1, 17)]},
            "variants: 17 of s are 17 combinations of ranges, at most 16",
        ),
    ],
)
def test_what_are_no_ranges_is_refused(variants: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        rx.optimize(LOW_RANK, variants=variants)


# --- on the command line -------------------------------------------------------------------


def test_the_command_takes_ranges(tmp_path: Path) -> None:
    rx.save_module(LOW_RANK, tmp_path / "model.relax")
    files = [str(tmp_path / name) for name in ("model.relax", "best.relax")]

    result = invoke("optimize", files[0], "-o", files[1], "--variant", "s=1,2:64,65:", "--json")

    assert result.exit_code == 0, result.output
    plans = json.loads(result.stdout)["plans"]
    assert [plan["sizes"] for plan in plans] == ["0 <= s <= 1", "2 <= s <= 64", "s >= 65"]
    assert_structural_equal(rx.load_module(files[1]), rx.optimize(LOW_RANK, variants=THREE))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("s=1:x", "'s=1:x' is not of the form SYMBOL=RANGES, such as s=1,2:64,65:"),
        ("s", "'s' is not of the form SYMBOL=RANGES, such as s=1,2:64,65:"),
        ("q=1", "variants of q: no parameter has it alone as a dimension; symbols are: s"),
    ],
)
def test_the_command_says_what_is_no_range(given: str, message: str, tmp_path: Path) -> None:
    rx.save_module(LOW_RANK, tmp_path / "model.relax")
    path = str(tmp_path / "model.relax")

    result = invoke("optimize", path, "-o", "best", "--variant", given)

    assert result.exit_code == 2
    assert message in result.output
