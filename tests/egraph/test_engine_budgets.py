"""Budgets: a run that would not end is ended, says why, and loses no program."""

from relax_egraph.egraph.engine import (
    Ban,
    Budget,
    Phase,
    RuleBook,
    StopReason,
    saturate,
)
from relax_egraph.egraph.view import View
from tests.support.hand_made import leaf, operation, ops, root, view

GROWING = '(rewrite (R.exp x) (R.exp (R.abs x)) :name "always-one-more")'
REGROUP = '(birewrite (R.add (R.add a b) c) (R.add a (R.add b c)) :name "regroup")'
LOG_OF_ABS = '(rewrite (R.log (R.abs x)) (R.log x) :name "log-of-abs")'


def chain(length: int) -> View:
    """A sum of leaves, from the left."""
    sums = [
        operation("add", 0, 1),
        *(operation("add", length - 2 + k, k) for k in range(2, length)),
    ]
    return view(*(leaf(k) for k in range(length)), *sums)


def test_a_rule_that_feeds_itself_is_named_and_banned_and_the_run_goes_on() -> None:
    program = view(leaf(0), operation("exp", 0), operation("abs", 1), operation("log", 2))
    book = RuleBook.default([GROWING, LOG_OF_ABS], families=["fusion"])

    saturated = saturate(program, book, Budget(nodes=200, iterations=100_000), isolate=False)

    first, *others = saturated.report.phases
    (ban,) = first.bans
    assert (ban.rule, ban.phase) == ("always-one-more", "rewrite")
    assert ban.nodes_before <= 100
    assert ban.nodes_after in range(201, 210)
    assert first.stop is StopReason.SATURATED
    assert [p.name for p in others] == ["lower", "fusion"]
    assert saturated.report.matches["log-of-abs"] == 1
    assert saturated.report.stop_reason == "saturated without always-one-more"
    assert not saturated.report.saturated


def test_rules_that_explode_are_stopped_before_the_iteration_that_does() -> None:
    book = RuleBook.default([REGROUP], families=["canon", "fusion"])

    report = saturate(chain(39), book, Budget(nodes=5_000), isolate=False).report

    (ban,) = report.bans
    assert ban.rule == "regroup"
    assert ban.nodes_before <= 5_000 < (ban.nodes_after or 0)
    assert report.phases[0].nodes <= 5_000
    assert report.phases[0].stop is StopReason.SATURATED


def test_of_the_rules_that_explode_together_the_users_is_banned() -> None:
    """Commutativity, which is the book's, matches more often than the rule that makes sums."""
    book = RuleBook.default([REGROUP], families=["canon", "fusion"])

    report = saturate(chain(30), book, Budget(nodes=3_000), isolate=False).report

    assert [ban.rule for ban in report.bans] == ["regroup"]
    assert report.matches["add-commutes"] > report.matches["regroup=>"]


def test_a_ban_is_told_with_the_nodes_before_and_after() -> None:
    told = [
        str(Ban("twice", "rewrite", 0, 7, 90, 4_000)),
        str(Ban("cross", "rewrite", 0, 1, 59, None)),
    ]

    assert told == [
        "twice is banned from iteration 7 on: 90 nodes grew to 4000",
        "cross is banned from iteration 1 on: from 59 nodes it did not end",
    ]


def test_the_report_reads_as_a_text() -> None:
    book = RuleBook.default([REGROUP], families=["canon", "fusion"])

    report = saturate(chain(30), book, Budget(nodes=3_000), isolate=False).report

    lines = str(report).splitlines()
    assert lines[0].startswith(f"rewrite: saturated after {report.phases[0].iterations} iterations")
    assert "  " + str(report.bans[0]) in lines
    assert any(line.startswith("lower: saturated") for line in lines)


def test_the_time_budget_ends_a_phase_and_loses_no_program() -> None:
    program = view(leaf(0), operation("exp", 0))
    book = RuleBook.default([GROWING])

    saturated = saturate(program, book, Budget(seconds=0.0, iterations=100_000), isolate=False)

    assert saturated.report.phases[0].stop is StopReason.TIME
    assert "store" in ops(root(saturated))


def test_the_iteration_budget_ends_a_phase() -> None:
    program = view(leaf(0), operation("exp", 0))
    book = RuleBook.default([GROWING], families=["fusion"])

    report = saturate(program, book, Budget(iterations=3), isolate=False).report

    assert (report.phases[0].stop, report.phases[0].iterations) == (StopReason.ITERATIONS, 3)
    assert report.stop_reason == "iterations (phase rewrite, most matches: always-one-more)"
    assert not report.saturated


def test_growth_is_bounded_by_what_a_phase_began_with() -> None:
    program = view(leaf(0), operation("exp", 0))
    book = RuleBook.default([GROWING], families=[])
    phase = Phase("grow", book.rulesets, growth=8, iterations=100_000)

    report = saturate(program, book, schedule=(phase,), isolate=False).report

    (ban,) = report.bans
    assert ban.rule == "always-one-more"
    assert report.nodes <= 8 * 2


def test_a_phase_that_no_rule_makes_too_large_stops_there() -> None:
    book = RuleBook.default(families=["fusion"])
    schedule = (Phase("lower", ("lower",), nodes=10), Phase("fusion", ("fusion",)))

    report = saturate(chain(20), book, schedule=schedule).report

    assert report.phases[0].stop is StopReason.NODES
    assert not report.bans
