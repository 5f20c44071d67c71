"""Budgets: a run that would not end is ended, says why, and loses no program."""

from relax_egraph.egraph.engine import Budget, RuleBook, StopReason, saturate
from tests.hand_made import leaf, made, ops, root, view

GROWING = '(rewrite (R.exp x) (R.exp (R.abs x)) :name "always-one-more")'


def test_a_rule_that_feeds_itself_stops_at_the_node_budget_and_is_named() -> None:
    program = view(leaf(0), made("exp", 0))
    book = RuleBook.default([GROWING], families=["fusion"])

    report = saturate(program, book, Budget(nodes=200, iterations=100_000)).report

    first, *others = report.phases
    assert (first.stop, first.busiest) == (StopReason.NODES, "always-one-more")
    assert 200 < first.nodes < 250
    assert [p.name for p in others] == ["lower", "fusion"]
    assert report.stop_reason == "node budget (phase rewrite, most matches: always-one-more)"


REGROUP = '(birewrite (R.add (R.add a b) c) (R.add a (R.add b c)) :name "regroup")'


def test_rules_that_explode_are_stopped_before_the_iteration_that_does() -> None:
    book = RuleBook.default(
        ['(birewrite (R.add (R.add a b) c) (R.add a (R.add b c)) :name "regroup")']
    )
    chain = [made("add", 0, 1), *(made("add", 39 + k, k) for k in range(1, 39))]
    program = view(*(leaf(k) for k in range(39)), *chain)

    report = saturate(program, book, Budget(nodes=5_000)).report

    assert report.phases[0].stop is StopReason.NODES
    assert report.phases[0].busiest in {"regroup=>", "regroup<="}
    assert report.phases[0].nodes < 10_000


def test_the_time_budget_ends_a_phase_and_loses_no_program() -> None:
    program = view(leaf(0), made("exp", 0))
    book = RuleBook.default([GROWING])

    saturated = saturate(program, book, Budget(seconds=0.0, iterations=100_000))

    assert saturated.report.phases[0].stop is StopReason.TIME
    assert "store" in ops(root(saturated))


def test_the_iteration_budget_ends_a_phase() -> None:
    program = view(leaf(0), made("exp", 0))

    report = saturate(program, RuleBook.default([GROWING]), Budget(iterations=3)).report

    assert (report.phases[0].stop, report.phases[0].iterations) == (StopReason.ITERATIONS, 3)
    assert not report.saturated
