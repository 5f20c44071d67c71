"""A seed determines the verdicts: in every process, in every order, on a busy machine."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.verify.check import Check, check_seeds
from relax_egraph.verify.group import Group
from relax_egraph.workers.executor import Executor
from relax_egraph.workers.process import Death, Limits

T = TypeVar("T")

SHIFTED = (
    *("channel-axes-of-data", "channel-axes-of-result", "channel-shift-by-add"),
    *("channel-shift-by-subtract", "conv-of-shifted-channels"),
    *("convolves-conv1d", "convolves-conv2d", "convolves-conv3d"),
    *("convolves-conv1d-transpose", "convolves-conv2d-transpose", "convolves-conv3d-transpose"),
)
"""Rules of one group that match few of their instances, so that all are drawn several times."""

NEVER_NEGATIVE = """
; the relation means: no element is negative
(relation never-negative (Tensor))
; float: exact
(rule ((= t (R.exp x))) ((never-negative t)) :name "of-exp")
; float: exact
(rule ((= t (R.sigmoid x))) ((never-negative t)) :name "of-sigmoid")
; float: exact
(rewrite (R.abs x) x :when ((never-negative x)) :name "drop-abs")
"""


def verdicts(processes: int, seeds: list[int], hash_seed: int) -> dict[str, Any]:
    """The verdicts on `SHIFTED` by seed, in a new Python with this hash seed."""
    script = Path(__file__).with_name("verdicts_of_seeds.py")
    arguments = [str(processes), *map(str, seeds), "--", *SHIFTED]
    run = subprocess.run(
        [sys.executable, str(script), *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        | {"PYTHONHASHSEED": str(hash_seed)},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(run.stdout)


def test_a_seed_has_the_same_verdicts_in_every_process_and_order() -> None:
    one = verdicts(1, [17, 9], hash_seed=0)
    other = verdicts(2, [9, 17], hash_seed=1)

    assert one == other
    assert [v["rule"] for v in one["17"] if v["fired"]]


def test_a_copy_is_never_taken_for_an_instance_that_is_gone() -> None:
    book = RuleBook.default([NEVER_NEGATIVE], families=())
    pattern = next(d for r in book.rules if r.name == "drop-abs" for d in r.directions)
    group = Group(book, pattern, Random(0), chains={"drop-abs": (pattern,)})
    drawn = [i for _ in range(20) if (i := group.attempt((pattern,), small=True)) is not None]
    kept, gone = drawn[0], len(drawn) - 1

    del drawn[1:]
    group.record(([replace(kept) for _ in range(100 * gone)], []))
    group.record(([kept], []))

    assert group.leaving == [group.left[kept]]


class Overloaded(Executor):
    """Runs the units of one rule here; those of several rules take too long."""

    size = 1

    def __init__(self, begin: Callable[[], object] | None = None) -> None:
        if begin is not None:
            begin()

    def run(self, call: Callable[[], T], limits: Limits) -> T | Death:
        assert isinstance(call, partial)
        several = len(call.args[0].chains) > 1
        return Death("time", "by SIGPROF", limits) if several else call()

    def close(self) -> None:
        """There is nothing to end."""


def test_a_limit_that_was_reached_is_part_of_the_verdict() -> None:
    book = RuleBook.default([NEVER_NEGATIVE], families=())
    cut = "the check of its group did not end within 120 s of processor time"

    in_time, late = (
        check_seeds(Check(book, trials=3, executor=executor), [0])[0]
        for executor in (None, Overloaded)
    )

    assert [v.cut for v in in_time] == ["", "", ""]
    assert [v.sound for v in late] == [True, True, True]
    assert all(str(v).endswith(f"; tried by itself: {cut}") for v in late)
    assert {v.as_dict()["cut"] for v in late} == {f"tried by itself: {cut}"}
