"""Bisections of costs as tasks find what they find in this process, and go on from a journal."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import relax_egraph as rx
from relax_egraph.base.journal import Journal
from relax_egraph.egraph.functions.function import FUNCTIONS
from relax_egraph.reasons.cost_tasks import CostBisection, bisect_costs
from relax_egraph.reasons.gains import CostBisected, bisect_cost
from relax_egraph.reasons.restricted import Restricted
from relax_egraph.workers.pool import Pool

OPTIONS: dict[str, Any] = {
    "without": tuple(f for f in rx.rules.FAMILIES if f not in ("canon", "idioms", "fma"))
}
"""Few families, so that there are few tries."""


def model(calls: str) -> rx.IRModule:
    return rx.parse(f"""
@R.function
def main(x: R.Tensor((8, 64), "float32"), y: R.Tensor((8, 64), "float32")):
    with R.dataflow():
        a = R.multiply(x, y)
        b = R.add(a, {calls})
        R.output(b)
    return b
""")


MODELS = {"one": model("R.exp(R.negative(R.negative(x)))"), "two": model("y")}


def bisection(*names: str, gain: float = 1.0, **options: Any) -> CostBisection:
    return CostBisection({n: MODELS[n] for n in names}, (), gain, OPTIONS | options)


def shown(found: Iterable[tuple[str, CostBisected]]) -> dict[str, Any]:
    return {name: one.as_dict() | {"seconds": 0} for name, one in found}


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    found = [(n, bisect_cost(m, gain=1.0, **OPTIONS)) for n, m in MODELS.items()]
    return shown(found)


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of rules in the tries of this process."""
    sizes: list[int] = []
    measured = Restricted.measured

    def counted(self: Restricted, kept: frozenset[str]) -> Any:
        sizes.append(len(kept))
        return measured(self, kept)

    monkeypatch.setattr(Restricted, "measured", counted)
    return sizes


@pytest.mark.parametrize("executor", [None, partial(Pool, 2)])
@pytest.mark.parametrize("names", [("one",), ("one", "two")])
def test_there_as_here(
    expected: dict[str, Any], names: tuple[str, ...], executor: Callable[..., Pool] | None
) -> None:
    found = shown(bisect_costs(bisection(*names), executor))

    assert found == {name: expected[name] for name in names}


def test_a_bisection_that_was_killed_tries_only_the_rest(
    expected: dict[str, Any], tmp_path: Path, tried: list[int]
) -> None:
    file = tmp_path / "cost.jsonl"
    assert shown(bisect_costs(bisection("one"), journal=Journal(file))) == {"one": expected["one"]}
    every = list(tried)
    lines = file.read_bytes().splitlines(keepends=True)
    assert len(lines) == 2 + len(every) > 4

    killed = tmp_path / "killed.jsonl"
    killed.write_bytes(b"".join(lines[:3]) + lines[3][:20])
    tried.clear()
    resumed = shown(bisect_costs(bisection("one"), journal=Journal(killed)))
    assert resumed == {"one": expected["one"]}
    assert tried == every[2:]

    tried.clear()
    both = shown(bisect_costs(bisection("one", "two"), partial(Pool, 1), Journal(file)))
    assert both == expected
    assert tried == []


def test_another_gain_has_the_same_tries(tmp_path: Path, tried: list[int]) -> None:
    file = tmp_path / "cost.jsonl"
    dict(bisect_costs(bisection("one"), journal=Journal(file)))
    tried.clear()

    half = shown(bisect_costs(bisection("one", gain=0.999), journal=Journal(file)))

    assert tried == []
    assert half["one"]["gain"] == 0.999


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (bisection("one", fast_math=True), "options"),
        (CostBisection({"one": MODELS["one"]}, ["; a\n"], 1.0, OPTIONS), "rules"),
        (bisection("two"), "models"),
    ],
)
def test_a_journal_of_another_bisection_is_refused(
    tmp_path: Path, other: CostBisection, said: str
) -> None:
    file = tmp_path / "cost.jsonl"
    next(bisect_costs(bisection("one"), journal=Journal(file)))

    with pytest.raises(ValueError, match=f"cost.jsonl is of other {said} than this run; give"):
        next(bisect_costs(other, journal=Journal(file)))


@pytest.fixture
def declared() -> Iterator[None]:
    """Functions that a test declares are not there for the next."""
    before = dict(FUNCTIONS)
    yield
    FUNCTIONS.clear()
    FUNCTIONS.update(before)


@pytest.mark.usefixtures("declared")
def test_rules_with_python_functions_have_no_tasks() -> None:
    @rx.rules.function
    def whole_of(number: float) -> float | None:
        return number if number.is_integer() else None

    rule = """
(rewrite (R.multiply x y) (R.multiply y x)
  :when ((= k (whole-of (const-scalar y)))) :name "whole-first")
"""

    with pytest.raises(ValueError, match="rules with Python functions have no tasks"):
        next(bisect_costs(CostBisection(MODELS, [rule]), journal=Journal()))
