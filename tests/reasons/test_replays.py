"""Replays of many models: the same in any process, from a journal, and a false rule is named."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import relax_egraph as rx
from relax_egraph.base.journal import Journal
from relax_egraph.proof.replay import replay
from relax_egraph.reasons import replays as room
from relax_egraph.reasons.no_block import NO_BLOCK
from relax_egraph.reasons.replays import ModelReplayed, Replays, replays
from relax_egraph.workers.pool import Pool


def model(call: str) -> rx.IRModule:
    return rx.parse(f"""
@R.function
def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("n", 4), "float32")):
    with R.dataflow():
        a = R.multiply(x, {call})
        b = R.add(a, y)
        R.output(b)
    return b
""")


MODELS = {"one": model("y"), "two": model("R.negative(R.negative(y))")}
WRONG = """\
; x · y = x
; float: exact
(rewrite (R.multiply x y) x :name "drops-a-factor")
"""
BOTH = Replays(MODELS, seeds=(0, 1))


def by_task(found: Any) -> dict[tuple[str, int], ModelReplayed]:
    return {(one.model, one.seed): one for one in found}


@pytest.fixture(scope="module")
def whole() -> dict[tuple[str, int], ModelReplayed]:
    return by_task(replays(BOTH))


def test_a_model_is_replayed_as_its_traces_are(
    whole: dict[tuple[str, int], ModelReplayed],
) -> None:
    (trace,) = rx.explain(MODELS["one"], proof=True).traces
    one = replay(trace, seed=1)

    expected = ModelReplayed("one", 1, one.steps, one.values, one.error, one.needs)
    assert whole["one", 1] == expected
    assert [*whole] == [("one", 0), ("one", 1), ("two", 0), ("two", 1)]


@pytest.mark.parametrize("executor", [None, partial(Pool, 2)])
def test_replays_that_were_killed_go_on_with_the_rest(
    whole: dict[tuple[str, int], ModelReplayed],
    tmp_path: Path,
    executor: Callable[..., Pool] | None,
) -> None:
    file = tmp_path / "replays.jsonl"
    some = replays(BOTH, journal=Journal(file))
    next(some)
    next(some)
    some.close()

    assert by_task(replays(BOTH, executor, Journal(file))) == whole


def test_what_is_known_is_not_proven_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "replays.jsonl"
    first = by_task(replays(Replays(MODELS, seeds=(0,)), journal=Journal(file)))
    seeds: list[int] = []

    def counted(trace: Any, *, seed: int, sizes: Any) -> Any:
        seeds.append(seed)
        return replay(trace, seed=seed, sizes=sizes)

    monkeypatch.setattr(room, "replay", counted)
    both = by_task(replays(BOTH, journal=Journal(file)))

    assert both.items() >= first.items()
    assert seeds == [1, 1]


def test_a_false_rule_is_the_failure_of_its_model() -> None:
    how = {"without": [f for f in rx.rules.FAMILIES if f != "fusion"]}
    found = by_task(replays(Replays({"one": MODELS["one"]}, [WRONG], options=how)))

    wrong = found["one", 0]
    assert wrong.failure.startswith("main, ")
    assert wrong.rules == ("drops-a-factor",)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (Replays({"one": MODELS["one"]}, ["; a\n"]), "rules"),
        (Replays({"one": MODELS["one"]}, options={"fast_math": True}), "options"),
        (Replays({"one": MODELS["one"]}, sizes={"n": 3}), "sizes"),
        (Replays({"one": MODELS["one"]}, seeds=(5,)), "models or seeds"),
        (Replays({"two": MODELS["two"]}), "models or seeds"),
    ],
)
def test_a_journal_of_other_replays_is_refused(tmp_path: Path, other: Replays, said: str) -> None:
    file = tmp_path / "replays.jsonl"
    next(replays(Replays({"one": MODELS["one"]}), journal=Journal(file)))

    with pytest.raises(ValueError, match=f"replays.jsonl is of other {said} than this run; give"):
        next(replays(other, journal=Journal(file)))


def test_a_module_without_dataflow_blocks_is_refused() -> None:
    plain = rx.parse("@R.function\ndef main(x: R.Tensor((2,), 'float32')):\n    return x\n")

    with pytest.raises(ValueError, match=NO_BLOCK[:20]):
        next(replays(Replays({"plain": plain})))
