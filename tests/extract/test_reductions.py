"""What makes a problem smaller keeps a best solution, and what proves a bound proves it."""

import math
from typing import Any

import numpy as np
import pytest

from relax_egraph.extract import frontier, mip, search
from relax_egraph.extract.certificate import certify, cheapest
from relax_egraph.extract.contract import contract
from relax_egraph.extract.greedy import greedy
from relax_egraph.extract.problem import (
    Candidate,
    Problem,
    Selection,
    Solution,
    computable,
    in_order,
)
from relax_egraph.extract.prune import prune
from relax_egraph.extract.relaxation import relaxation_at
from relax_egraph.extract.rows import rows_of
from tests.extract.test_select import made, random_problem


def solvable(seeds: range) -> list[Problem]:
    problems = (random_problem(seed) for seed in seeds)
    return [p for p in problems if computable(p).issuperset(p.roots)]


def test_what_costs_nothing_is_contracted() -> None:
    problem = Problem(
        (
            made(0, cost=0),
            made(1, 0, cost=0),
            made(2, 1, cost=3),
            made(3, 0, 2, cost=0),
            made(4, 3, 1, cost=2),
            made(4, 2, cost=5),
            made(5, 4, 3, cost=0),
        ),
        (5,),
    )

    left = contract(problem)

    assert left.fixed == {0: 0, 1: 1, 3: 3, 5: 6}
    assert left.problem == Problem(
        (made(2, cost=3), made(4, 2, cost=2), made(4, 2, cost=5)), (2, 4)
    )
    assert left.numbers == (2, 4, 5)


def test_a_contracted_problem_has_the_same_solutions() -> None:
    contracted = 0
    for problem in solvable(range(1200, 1600)):
        left = contract(problem)

        best = cheapest(left.problem)
        pruned = prune(left.problem)
        solution, cost = greedy(left.problem, pruned)
        whole = {**left.fixed, **{c: left.numbers[n] for c, n in solution.items()}}
        order = in_order(problem, whole)
        assert best == pytest.approx(cheapest(problem))
        assert order is not None
        certify(problem, Selection(order, cost, best, "", "", 0.0))
        contracted += len(left.fixed) > 0
    assert contracted >= 100


def test_any_multipliers_prove_a_bound() -> None:
    for seed, problem in enumerate(solvable(range(1600, 1700))):
        rows = rows_of(problem, prune(problem))
        random_ones = np.random.default_rng(seed).normal(0, 3, len(rows.lower))

        proven = relaxation_at(problem, rows, {}, random_ones)

        assert proven.bound <= cheapest(problem) + 1e-9
        for number, extra in proven.extra.items():
            c = problem.candidates[number].output
            others = [k for n, k in enumerate(problem.candidates) if k.output != c or n == number]
            with_it = cheapest(Problem(tuple(others), (*problem.roots, c)))
            assert proven.bound + extra <= with_it + 1e-9


def test_the_relaxation_is_proven_by_its_multipliers() -> None:
    tight = 0
    for problem in solvable(range(1700, 1900)):
        pruned = prune(problem)
        best = cheapest(problem)

        cost = greedy(problem, pruned)[1]
        *_, relaxed = mip.relaxations(problem, pruned, (), cost, 10.0)

        assert relaxed.bound <= best + 1e-9
        tight += relaxed.bound >= best - 1e-6
    assert tight >= 140


def test_parts_that_differ_in_numbers_only_are_solved_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    layer = [(1, (0,), 6), (2, (0,), 4), (2, (1,), 1), (3, (0,), 4), (3, (1,), 1)]
    layer += [(4, (2, 3), 1), (4, (0,), 9)]
    chain = [made(0, cost=1)] + [
        Candidate(c + 4 * k, frozenset(d + 4 * k for d in inputs), float(cost))
        for k in range(50)
        for c, inputs, cost in layer
    ]
    problem = Problem(tuple(chain), tuple(4 * k + 4 for k in range(50)))
    solved: list[Problem] = []

    solve = frontier.solve

    def counted(part: Problem, *rest: Any) -> Solution | None:
        solved.append(part)
        return solve(part, *rest)

    monkeypatch.setattr(frontier, "solve", counted)

    found = search.Search(math.inf).best(problem)

    assert len(solved) == 1
    assert found.cost == 1 + 50 * 9
