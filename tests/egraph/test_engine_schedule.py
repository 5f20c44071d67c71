"""The schedule is data: phases in an order, bounds of each, and back-off, all for the caller."""

import math
import re
from dataclasses import replace

import pytest

from relax_egraph.egraph.engine import (
    Phase,
    RuleBook,
    StopReason,
    default_schedule,
    saturate,
)
from relax_egraph.egraph.saturation.backoff import BackOff
from relax_egraph.egraph.view import View
from tests.support.hand_made import leaf, operation, ops, root, view

LOG_OF_EXP = '(rewrite (R.log (R.exp x)) x :ruleset {} :name "my-log-of-exp")'
REGROUP = '(birewrite (R.add (R.add a b) c) (R.add a (R.add b c)) :name "regroup")'
LOWERING = (Phase("lower", ("lower",)), Phase("fusion", ("fusion",)))


def chain(length: int) -> View:
    sums = [
        operation("add", 0, 1),
        *(operation("add", length - 2 + k, k) for k in range(2, length)),
    ]
    return view(*(leaf(k) for k in range(length)), *sums)


def test_by_default_all_rewrites_run_together_then_lowering_then_fusion() -> None:
    book = RuleBook.default([LOG_OF_EXP.format("canon")], families=["canon", "fma", "fusion"])

    rewrite, *own = default_schedule(book)

    assert (rewrite.name, rewrite.rulesets) == ("rewrite", ("canon", "fma"))
    assert [(p.name, p.rulesets, p.nodes) for p in own] == [
        ("lower", ("lower",), math.inf),
        ("fusion", ("fusion",), math.inf),
    ]


def test_images_run_when_others_are_done_with_what_moves_permutations() -> None:
    mine = f"(ruleset mine) {LOG_OF_EXP.format('mine')}"
    book = RuleBook.default([mine], families=["layout", "fma", "images", "fusion"])

    rewrite, images, *_ = default_schedule(book)

    assert rewrite.rulesets == ("layout", "fma", "mine")
    assert (images.name, images.rulesets) == ("images", ("layout", "mine", "images"))


def test_a_users_file_is_a_ruleset_of_the_first_phase() -> None:
    book = RuleBook.default([f"(ruleset mine) {LOG_OF_EXP.format('mine')}"], families=["fusion"])

    assert default_schedule(book)[0].rulesets == ("mine",)


def test_a_family_can_run_before_the_others_and_again() -> None:
    schedule = (
        Phase("clean", ("canon",)),
        Phase("rewrite", ("shape", "fma", "idioms")),
        Phase("clean", ("canon",), iterations=1),
        *LOWERING,
    )
    product = operation("multiply", 0, 1)
    program = view(leaf(0), leaf(1), leaf(2), product, operation("add", 3, 2))

    report = saturate(program, schedule=schedule).report

    assert [p.name for p in report.phases] == ["clean", "rewrite", "clean", "lower", "fusion"]
    assert report.phases[0].matches.keys() == {"add-commutes", "multiply-commutes"}
    assert "fma-from-add-multiply" in report.phases[1].matches


def test_what_no_phase_names_does_not_run() -> None:
    program = view(leaf(0), leaf(1), leaf(2), operation("multiply", 0, 1), operation("add", 3, 2))

    saturated = saturate(program, schedule=LOWERING)

    assert ops(root(saturated)) == {"add", "store"}


@pytest.mark.parametrize(
    ("phase", "message"),
    [
        (Phase("p", ("cannon",)), "phase p: no ruleset is named 'cannon'; did you mean canon?"),
        (Phase("p", ("facts",)), "phase p: no ruleset is named 'facts'"),
    ],
)
def test_a_phase_of_rules_that_there_are_not_is_refused(phase: Phase, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        saturate(chain(2), schedule=(phase,))


def test_a_schedule_without_phases_is_refused() -> None:
    with pytest.raises(ValueError, match="the schedule has no phase"):
        saturate(chain(2), schedule=())


def test_a_family_that_is_left_out_of_the_book_is_not_in_the_schedule() -> None:
    with pytest.raises(ValueError, match="no ruleset is named 'fma'"):
        saturate(
            chain(2), RuleBook.default(without=["fma"]), schedule=(Phase("p", ("fma",)), *LOWERING)
        )


def test_a_phase_has_seconds_of_its_own() -> None:
    growing = '(rewrite (R.exp x) (R.exp (R.abs x)) :name "always-one-more")'
    book = RuleBook.default([growing], families=["canon", "fusion"])
    first, *rest = default_schedule(book)
    schedule = (replace(first, seconds=0.0), Phase("again", ("canon",)), *rest)

    report = saturate(
        view(leaf(0), operation("exp", 0)), book, schedule=schedule, isolate=False
    ).report

    stops = [p.stop for p in report.phases]
    assert stops == [StopReason.TIME, *[StopReason.SATURATED] * 3]


def test_back_off_lets_a_rule_sit_out_twice_as_long_each_time() -> None:
    back_off = BackOff(Phase("p", (), match_limit=10, ban_length=2))
    sat_out = list[int]()

    for iteration in range(1, 15):
        active = back_off.active(["busy", "calm"], iteration)
        if "busy" not in active:
            sat_out.append(iteration)
        back_off.observe({rule: {"busy": 25, "calm": 9}[rule] for rule in active}, 5, iteration)

    assert sat_out == [2, 3, 5, 6, 7, 8]
    assert back_off.sat_out == {"busy": 6}


def test_as_many_matches_as_nodes_are_not_too_many() -> None:
    back_off = BackOff(Phase("p", (), match_limit=10))

    back_off.observe({"linear": 1000}, 1000, 1)

    assert back_off.active(["linear"], 2) == ("linear",)


def test_a_rule_that_sat_out_comes_back_when_nothing_else_is_to_do() -> None:
    """Regrouping is held back at once, yet finds in the end every sum of six leaves.

    Each of k leaves is on the left, on the right or not in a sum: 3^k - 2·2^k + 1 sums.
    """
    book = RuleBook.default([REGROUP], families=["canon"])
    phase, *_ = default_schedule(book)
    held = replace(phase, match_limit=1, ban_length=20)

    report = saturate(chain(6), book, schedule=(held,), isolate=False).report

    assert report.phases[0].stop is StopReason.SATURATED
    assert report.phases[0].sat_out["regroup"] > 0
    assert report.nodes == 6 + (3**6 - 2 * 2**6 + 1)
