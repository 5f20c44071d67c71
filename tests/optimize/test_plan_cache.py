"""Plans on disk: found again by every process, the same as without, never in the way."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph.base import sources
from relax_egraph.egraph.engine import Budget, default_schedule
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.extract import REFERENCE_PROFILE
from relax_egraph.ir.dims import symbol
from relax_egraph.ir.expr import Constant, Function, PrimValue, ShapeExpr, Var
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo, tensor
from relax_egraph.ir.walk import constants_of
from relax_egraph.lower.jit.object_cache import ObjectCache
from relax_egraph.optimize import cache as plan_cache
from relax_egraph.optimize.cache.naming import Nameless, text_of
from relax_egraph.optimize.explanation import Explanation
from relax_egraph.passes import PassContext
from relax_egraph.passes.fold_constant import GROWTH_LIMIT

REGIONS = import_module("relax_egraph.optimize.regions")
ROOT = Path(__file__).parents[2]

W = np.random.default_rng(0).standard_normal((32, 16)).astype(np.float32)

TEXT = """
@R.function
def main(x: R.Tensor(("n", 32), "float32"), b: R.Tensor((16,), "float32")):
    with R.dataflow():
        lv0 = R.matmul(x, metadata["relax.expr.Constant"][0])
        lv1 = R.add(lv0, b)
        lv2 = R.nn.relu(lv1)
        gv = R.multiply(lv2, R.const(2.0, "float32"))
        R.output(gv)
    return gv
"""

DENSE = rx.parse(TEXT, constants=[W])

MIXED = rx.parse(
    """
@R.function
def main(x: R.Tensor(("n", 8), "float32"), y: R.Tensor(ndim=2, dtype="float32")):
    m = T.int64()
    with R.dataflow():
        lv0 = R.match_cast(y, R.Tensor(("n", "m"), "float32"))
        lv1 = R.split(x, indices_or_sections=2, axis=1)
        lv2 = lv1[0]
        lv3 = R.reshape(lv2, R.shape(["n * 2", 2]))
        lv4 = R.call_dps_packed("mine.f", (lv3,), out_sinfo=R.Tensor(("n * 2", 2), "float32"))
        lv5 = R.exp(lv4)
        lv6 = R.sum(lv0, axis=[1], keepdims=True)
        lv7 = R.clip(lv6, -1.0, 2.0)
        R.output(lv5, lv7)
    return (lv5, lv7)
"""
)
"""A check, a tuple, sizes that are computed, a call that rules do not look into."""

ATTENTION = rx.parse(
    """
@R.function
def main(x: R.Tensor((1, 4, "n", 16), "float32")):
    with R.dataflow():
        lv0 = R.permute_dims(x, axes=[0, 2, 1, 3])
        gv = R.nn.attention(lv0, lv0, lv0)
        R.output(gv)
    return gv
"""
)
"""A kernel of an operator that has an operand left out."""

TWICE = """
@R.function
def main(x: R.Tensor(("n", 64), "float32"), w: R.Tensor((64, 64), "float32"),
         v: R.Tensor((64, 64), "float32")):
    with R.dataflow():
        h = R.nn.relu(R.matmul(x, w))
        g = R.nn.relu(R.matmul(x, v))
        both = R.add(h, g)
        out = R.add(R.nn.softmax(both, axis=-1), h)
        R.output(out)
    return out
"""
"""Two products and what is made of them: the greedy program is not proven at once."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an empty cache, for sources that nobody edits."""
    monkeypatch.setenv("RELAX_EGRAPH_CACHE", str(tmp_path / "plans"))
    monkeypatch.setattr(plan_cache, "planner_version", lambda: "this one")
    return tmp_path / "plans"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is not read but made, in order."""
    done: list[str] = []
    for name in ("saturate", "extract_from"):

        def noted(name: str, do: Callable[..., Any], *args: Any, **how: Any) -> Any:
            done.append(name.removesuffix("_from"))
            return do(*args, **how)

        monkeypatch.setattr(REGIONS, name, partial(noted, name, getattr(REGIONS, name)))
    return done


def entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.exists() else []


def said(explained: Explanation) -> object:
    """All that an explanation says but how long it took."""
    regions = [
        (r.function, r.view.classes, r.view.roots, r.extraction.program, r.extraction.cost)
        for r in explained.regions
    ]
    return explained.module.script(), regions, dict(explained.rules), explained.cost_before


CASES: dict[str, Callable[[], Explanation]] = {
    "a product": lambda: rx.explain(DENSE),
    "for ranges of sizes": lambda: rx.explain(DENSE, variants={"n": [(1, 1), (2, None)]}),
    "assuming": lambda: rx.explain(DENSE, assume=["n % 8 == 0"]),
    "within a tolerance": lambda: rx.explain(DENSE, tolerance=0.02, hints={"n": 1}),
    "what rules do not look into": lambda: rx.explain(MIXED),
    "an operand that is left out": lambda: rx.explain(ATTENTION),
}


@pytest.mark.parametrize("case", CASES)
def test_a_plan_that_is_read_is_the_one_that_was_made(
    folder: Path, made: list[str], monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    run = CASES[case]
    first = run()
    count = len(made)
    second = run()
    monkeypatch.setenv("RELAX_EGRAPH_CACHE", "off")
    without = run()

    assert made[count:] == made[:count]  # the second run made nothing, the last all of it
    assert said(first) == said(second) == said(without)
    assert len(entries(folder)) == count


def test_a_plan_is_for_whatever_the_weights_are(folder: Path, made: list[str]) -> None:
    rx.optimize(DENSE)
    before = entries(folder)

    best = rx.optimize(rx.parse(TEXT, constants=[W + 1]))

    assert made == ["saturate", "extract"]
    assert entries(folder) == before
    main = best["main"]
    assert isinstance(main, Function)
    (weight,) = (c for c in constants_of(main) if c.data.shape == (32, 16))
    np.testing.assert_array_equal(weight.data, W + 1)


OTHER: dict[str, Callable[[], object]] = {
    "rules": lambda: rx.optimize(DENSE, [NEGATED], isolate=False),
    "without a rule": lambda: rx.optimize(DENSE, without=["fma"]),
    "fast math": lambda: rx.optimize(DENSE, fast_math=True),
    "budget": lambda: rx.optimize(DENSE, budget=Budget(nodes=1000)),
    "schedule": lambda: rx.optimize(DENSE, schedule=default_schedule(RuleBook.default())[1:]),
    "tolerance": lambda: rx.optimize(DENSE, tolerance=0.02),
    "assumption": lambda: rx.optimize(DENSE, assume=["n >= 1"]),
    "hints": lambda: rx.optimize(DENSE, hints={"n": 1}),
    "machine": lambda: rx.optimize(DENSE, profile=replace(REFERENCE_PROFILE, launch=1e-3)),
    "prices": lambda: rx.optimize(DENSE, prices=rx.Prices(calls={"f": 1.0})),
    "number": lambda: rx.optimize(rx.parse(TEXT.replace("2.0", "3.0"), constants=[W])),
    "growth": lambda: optimized_in(PassContext(config={GROWTH_LIMIT.key: 1})),
}
"""What a plan depends on, changed."""

NEGATED = '(rewrite (R.nn.relu x) (R.nn.relu (R.negative (R.negative x))) :name "twice")'


def optimized_in(context: PassContext) -> rx.IRModule:
    with context:
        return rx.optimize(DENSE)


@pytest.mark.parametrize("what", OTHER)
def test_what_is_kept_for_other(folder: Path, made: list[str], what: str) -> None:
    """No plan is taken for one that depends on something else."""
    rx.optimize(DENSE)
    made.clear()

    OTHER[what]()
    first = list(made)
    OTHER[what]()

    assert "extract" in first
    assert made == first


def test_a_plan_that_is_optimal_is_so_for_any_time_limit(folder: Path, made: list[str]) -> None:
    for time_limit in (None, 20.0, 0.0):
        rx.optimize(DENSE, time_limit=time_limit)

    assert made == ["saturate", "extract"]


def test_a_search_that_was_cut_short_is_kept_and_continued(
    folder: Path, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Any] = []

    def within(time_limit: float | None) -> tuple[float, str]:
        (region,) = rx.explain(rx.parse(TWICE), time_limit=time_limit).regions
        found.append(region.extraction)
        return region.extraction.cost, region.extraction.status.split(" %, ")[-1]

    shortest, again = within(0.0), within(0.0)
    best, least = within(None), within(0.0)

    assert made == ["saturate", "extract", "extract"]
    assert shortest == again == (found[0].cost, "time limit")
    assert best == least == (found[2].cost, "optimal")
    assert found[2].cost <= found[0].cost


def test_what_makes_plans_is_part_of_their_name(
    folder: Path, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rx.optimize(DENSE)
    monkeypatch.setattr(plan_cache, "planner_version", lambda: "the next one")
    rx.optimize(DENSE)

    assert made == ["saturate", "extract"] * 2


def test_nothing_is_kept_while_sources_are_edited(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_cache, "planner_version", lambda: None)

    rx.optimize(DENSE)

    assert entries(folder) == []


def test_nothing_is_kept_where_the_cache_is_off(
    folder: Path, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rx.optimize(DENSE)
    before = entries(folder)
    monkeypatch.setenv("RELAX_EGRAPH_CACHE", "off")
    rx.optimize(DENSE)

    assert made == ["saturate", "extract"] * 2
    assert entries(folder) == before


def test_what_functions_of_the_user_price_is_not_kept(folder: Path, made: list[str]) -> None:
    for seconds in (0.0, 1.0):
        prices = rx.Prices(kernel=lambda kernel, sizes, known, s=seconds: known + s)
        rx.optimize(DENSE, prices=prices)

    assert made == ["saturate", "extract", "extract"]


def test_what_functions_of_an_operator_say_is_not_kept(folder: Path, made: list[str]) -> None:
    """An operator that no program and no rule names is no part of a plan."""

    @rx.operator("my.same", numpy=np.asarray)
    def same(x: TensorStructInfo) -> StructInfo:
        return x

    rule = '(rewrite (R.nn.relu x) (R.my.same (R.nn.relu x)) :name "relu-is-same")'
    text = "@R.function\ndef main(x: R.Tensor((4,))):\n    return R.my.same(x)"
    rx.optimize(DENSE)
    with rx.operators(same):
        rx.optimize(DENSE)
        assert made == ["saturate", "extract"]
        for _ in range(2):
            rx.optimize(rx.parse(text))
            rx.optimize(DENSE, [rule], isolate=False)

    assert made == ["saturate", "extract"] * 5


def test_what_time_cut_short_is_not_kept(folder: Path, made: list[str]) -> None:
    for _ in range(2):
        rx.optimize(DENSE, budget=Budget(seconds=0.0))

    assert made == ["saturate", "extract"] * 2


def test_a_folder_that_cannot_be_written_is_no_error(folder: Path, made: list[str]) -> None:
    folder.write_bytes(b"no folder")

    best = rx.optimize(DENSE)

    assert "fused_matmul_add_relu_multiply" in best.functions
    assert made == ["saturate", "extract"]


# --- entries that are no plans --------------------------------------------------------------


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "half": lambda data: data[: len(data) // 2],
    "a bit": lambda data: data[:-1] + bytes([data[-1] ^ 1]),
    "all": lambda data: b"x" * len(data),
    "empty": lambda data: b"",
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_entry_is_replaced(
    folder: Path, made: list[str], damage: Callable[[bytes], bytes]
) -> None:
    expected = said(rx.explain(DENSE))
    for entry in entries(folder):
        entry.write_bytes(damage(entry.read_bytes()))

    again = said(rx.explain(DENSE))
    third = said(rx.explain(DENSE))

    assert again == third == expected
    assert made == ["saturate", "extract"] * 2


def test_an_entry_under_the_name_of_another_is_not_read(folder: Path, made: list[str]) -> None:
    rx.optimize(MIXED)
    (mixed,) = (e for e in entries(folder) if b'"classes"' in e.read_bytes())
    other = mixed.read_bytes()
    expected = said(rx.explain(DENSE))
    for entry in entries(folder):
        if entry.read_bytes() != other:
            entry.write_bytes(other)
    made.clear()

    assert said(rx.explain(DENSE)) == expected
    assert made == ["saturate", "extract"]


JUNK = [None, True, -1, 10**30, 0.5, 1e999, "", "n // 0", "x(", [], [[]], {}, {"shape": []}]


def spoiled(data: Any, random: Random) -> Any:
    """`data` with something in it replaced."""
    if not isinstance(data, list | dict) or not data or random.random() < 0.1:
        return random.choice(JUNK)
    key = random.choice(list(data) if isinstance(data, dict) else range(len(data)))
    data[key] = spoiled(data[key], random)
    return data


@pytest.mark.parametrize("seed", range(20))
def test_an_entry_of_other_data_is_ignored_or_makes_a_program(folder: Path, seed: int) -> None:
    """Sealed as if it was written here: whatever it says, nothing is raised."""
    rx.optimize(DENSE)
    random = Random(seed)
    for entry in entries(folder):
        kept = ObjectCache(folder).get(entry.stem)
        assert kept is not None
        name, data = json.loads(kept)
        ObjectCache(folder).put(name, json.dumps([name, spoiled(data, random)]).encode())

    rx.optimize(DENSE)


# --- several processes ----------------------------------------------------------------------

PROGRAM = """
import sys
import time
from pathlib import Path
import relax_egraph as rx
from relax_egraph.optimize import cache as plan_cache
from tests.optimize.test_plan_cache import DENSE, REGIONS

plan_cache.planner_version = lambda: "this one"
if "read" in sys.argv:
    REGIONS.saturate = REGIONS.extract = REGIONS.book_for = None
print(rx.optimize(DENSE).script())
"""


def started(folder: Path, *args: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "RELAX_EGRAPH_CACHE": str(folder)}
    command = [sys.executable, "-c", PROGRAM, *args]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def test_processes_share_plans_and_what_is_read_needs_no_rules(folder: Path) -> None:
    both = [started(folder).communicate()[0] for _ in range(2)]
    third = started(folder, "read").communicate()[0]

    assert {*both, third} == {f"{rx.optimize(DENSE).script()}\n"}
    assert {entry.suffix for entry in entries(folder)} == {".o"}


# --- names ----------------------------------------------------------------------------------


def test_values_that_differ_have_other_texts() -> None:
    n = symbol("n")
    values = [
        *(None, True, 1, 1.0, "1", -0.0, 0.0, "", (), ((),), (1, 2), ("1", "2"), ("1,2",)),
        *(n, n * 2, "n", frozenset({1, 2}), {"a": 1}, {"a": 2}, PrimValue(1), PrimValue(1.0)),
        *(tensor((n,), "int8"), tensor((2,), "int8"), tensor(None, "int8"), ShapeExpr((n,))),
    ]

    assert len(set(map(text_of, values))) == len(values)


UNNAMED: dict[str, object] = {
    "variable": Var("x"),
    "constant": Constant(W),
    "function": said,
    "object": object(),
    "array": W,
    "inside": (1, (Var("x"),)),
}


@pytest.mark.parametrize("value", UNNAMED.values(), ids=UNNAMED)
def test_what_compares_by_identity_has_no_text(value: object) -> None:
    with pytest.raises(Nameless):
        text_of(value)


def test_the_order_of_a_mapping_is_no_part_of_it() -> None:
    assert text_of({"a": 1, "b": 2}) == text_of({"b": 2, "a": 1})


# --- sources --------------------------------------------------------------------------------


def test_sources_are_known_by_name_size_and_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "_PACKAGE", tmp_path)
    file = tmp_path / "part" / "inside" / "a.egg"
    file.parent.mkdir(parents=True)

    def found(text: str, seconds: int) -> tuple[str, ...] | None:
        file.write_text(text)
        (file.parent / "notes.txt").write_text(text)
        os.utime(file, (seconds, seconds))
        return sources.sources_in.__wrapped__(("part",))

    assert found("a", 1000) == ("part/inside/a.egg 1 1000000000000",)
    assert found("b", 2000) == ("part/inside/a.egg 1 2000000000000",)
    assert found("bb", 2000) == ("part/inside/a.egg 2 2000000000000",)
    assert found("bb", int(time.time())) is None
    assert sources.sources_in.__wrapped__(("nowhere",)) is None
