"""Barriers hold for every solution, and prove bounds that the edges alone do not."""

import math
import random

import numpy as np
import pytest

from relax_egraph.extract import mip
from relax_egraph.extract.barriers import Barrier, entering, row_at
from relax_egraph.extract.certificate import cheapest
from relax_egraph.extract.dual_ascent import Ascent, ascents
from relax_egraph.extract.greedy import greedy
from relax_egraph.extract.problem import Problem, computable
from relax_egraph.extract.prune import prune
from relax_egraph.extract.rows import Row, Rows
from relax_egraph.extract.separation import violated_barriers
from tests.extract.test_reductions import solvable
from tests.extract.test_select import made

PRODUCTS = Problem(
    (
        *(made(c, cost=10) for c in (0, 1)),
        *(made(2, c, cost=1) for c in (0, 1)),
        *(made(3, c, cost=1) for c in (0, 1)),
        *(made(4, c, cost=0.5) for c in (2, 3)),
    ),
    (4,),
)
"""A product in two layouts, each of which either user reads, and a root that reads one of these."""


def activity(row: Row, taken: dict[int, float], numbers: list[int]) -> float:
    return math.fsum(value * taken[numbers[place]] for place, value in row.entries.items())


def test_without_the_candidates_that_enter_a_set_none_of_its_classes_can_be_produced() -> None:
    r = random.Random(0)
    entered = 0
    for problem in solvable(range(2300, 2600)):
        pruned = prune(problem)
        classes = frozenset(r.sample([*pruned.options], r.randint(1, len(pruned.options))))

        gone = set(entering(problem, pruned, classes))

        left = [n for options in pruned.options.values() for n in options if n not in gone]
        smaller = Problem(tuple(problem.candidates[n] for n in left), problem.roots)
        assert classes.isdisjoint(computable(smaller))
        entered += bool(gone)
    assert entered >= 250


def test_what_is_violated_is_found_and_its_row_keeps_every_solution() -> None:
    r = random.Random(0)
    seen = 0
    for problem in solvable(range(1900, 2300)):
        pruned = prune(problem)
        chosen = set(greedy(problem, pruned)[0].values())
        numbers = [n for options in pruned.options.values() for n in options]
        column = {n: place for place, n in enumerate(numbers)}
        taken = {n: float(n in chosen) for n in numbers}
        assert list(violated_barriers(problem, pruned, taken)) == []

        picked = {r.choice(options) for options in pruned.options.values()}
        wild = {n: float(n in picked) for n in numbers}
        made_of = Problem(tuple(problem.candidates[n] for n in picked), problem.roots)
        found = list(violated_barriers(problem, pruned, wild))
        assert {b.top for b in found} == pruned.options.keys() - computable(made_of)
        for barrier in found:
            row = row_at(problem, pruned, barrier, column)
            held, broken = (activity(row, share, numbers) for share in (taken, wild))
            assert broken < row.lower <= held
            seen += 1
    assert seen >= 20


def charged(problem: Problem, ascent: Ascent) -> dict[int, float]:
    """What the barriers of `ascent` charge to each candidate."""
    pruned = prune(problem)
    total = dict.fromkeys(ascent.extra, 0.0)
    for barrier, amount in ascent.barriers.items():
        for number in entering(problem, pruned, barrier.classes):
            total[number] += amount
    return total


def test_an_ascent_charges_no_candidate_more_than_it_costs_so_it_proves_a_bound() -> None:
    tight = 0
    for problem in solvable(range(2600, 2900)):
        best = cheapest(problem)
        for ascent in ascents(problem, prune(problem), 10_000, math.inf):
            total = charged(problem, ascent)

            assert math.fsum(ascent.barriers.values()) == pytest.approx(ascent.bound)
            assert all(barrier.top in barrier.classes for barrier in ascent.barriers)
            for number, extra in ascent.extra.items():
                assert total[number] + extra == pytest.approx(problem.candidates[number].cost)
            assert ascent.bound <= best + 1e-9
            tight += ascent.bound >= best - 1e-9
    assert tight >= 450


def test_an_ascent_without_work_proves_nothing() -> None:
    for ascent in ascents(PRODUCTS, prune(PRODUCTS), 0, 11.5):
        assert (ascent.bound, ascent.barriers) == (0.0, {})


def test_barriers_see_that_a_product_is_computed_in_some_layout() -> None:
    pruned = prune(PRODUCTS)

    first, *_, last = mip.relaxations(PRODUCTS, pruned, (), 11.5, 10.0)

    assert cheapest(PRODUCTS) == 11.5
    assert first.bound == pytest.approx(6.5)  # both users by a half, of the same half of a product
    assert last.bound == pytest.approx(11.5)
    assert [a.bound for a in ascents(PRODUCTS, pruned, 10_000, math.inf)] == [11.5, 11.5]


def test_an_ascent_that_proves_the_cost_is_the_last() -> None:
    (only,) = ascents(PRODUCTS, prune(PRODUCTS), 10_000, 11.5)

    assert only.bound == 11.5


def test_rows_say_which_of_them_are_violated() -> None:
    rows = Rows([0, 1, 2])
    assert rows.violated(np.zeros(3)) == []
    at_least, at_most = Row({0: 1.0, 1: 1.0}, 1.0, math.inf), Row({1: 1.0, 2: 1.0}, -math.inf, 1.0)
    for row in (at_least, at_most):
        rows.add(row)

    assert rows.violated(np.array([0.0, 1.0, 0.0])) == []
    assert rows.violated(np.array([0.0, 0.5, 0.0])) == [at_least]
    assert rows.violated(np.array([0.5, 0.5, 0.6])) == [at_most]


def test_a_barrier_of_a_class_that_is_not_always_needed_demands_as_much_as_is_produced() -> None:
    pruned = prune(PRODUCTS)
    column = {n: n for n in range(len(PRODUCTS.candidates))}

    row = row_at(PRODUCTS, pruned, Barrier(0, frozenset({0})), column)
    needed = row_at(PRODUCTS, pruned, Barrier(4, frozenset(range(5))), column)

    assert row == Row({}, 0.0, math.inf)
    assert needed == Row({0: 1.0, 1: 1.0}, 1.0, math.inf)
