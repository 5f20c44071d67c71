"""A good solution without a solver: the classes settle in order of cost, cheapest first.

A class settles by a candidate whose inputs have settled, so no solution is ever cyclic.  What
an input costs is shared among those who use it; who they are is learnt from round to round.
Cost is that of a class as a whole, or in other rounds what each of its users pays: so a kernel
that makes several classes at once has its turn before those that make one of them.
"""

import heapq
import math
from collections.abc import Mapping

from relax_egraph.extract.problem import Problem, Solution, in_order
from relax_egraph.extract.prune import Pruned

_ROUNDS = 6


def greedy(
    problem: Problem, pruned: Pruned, taken: Mapping[int, float] | None = None
) -> tuple[Solution, float]:
    """The best solution of a few rounds, and its cost.  Each is linear, times a logarithm.

    `taken` is a share of each candidate that is free in looking for the solution: what an
    incomplete, fractional or cyclic solution takes of it.
    """
    costs = {
        number: problem.candidates[number].cost * (1.0 - (taken[number] if taken else 0.0))
        for numbers in pruned.options.values()
        for number in numbers
    }
    users: dict[int, list[int]] = {c: [] for c in pruned.options}
    for numbers in pruned.options.values():
        for number in numbers:
            for needed in problem.candidates[number].inputs:
                users[needed].append(number)
    best: Solution = {}
    least = math.inf
    share = {
        c: 1.0 / max(1, len({problem.candidates[n].output for n in found}))
        for c, found in users.items()
    }
    for number in range(_ROUNDS):
        share.update(dict.fromkeys(pruned.needed, 0.0))
        part = dict.fromkeys(share, 1.0) if number % 2 else share
        solution = _settle(problem, costs, users, share, part)
        order = in_order(problem, solution)
        assert order is not None  # each candidate was taken after its inputs
        cost = math.fsum(problem.candidates[n].cost for n in order)
        if cost < least:
            best, least = {problem.candidates[n].output: n for n in order}, cost
        share = _learnt(problem, pruned.options, order)
    return best, least


def _settle(
    problem: Problem,
    costs: Mapping[int, float],
    users: Mapping[int, list[int]],
    share: Mapping[int, float],
    part: Mapping[int, float],
) -> Solution:
    """Settle by cost times the `part` of the class, where that is not zero."""
    waiting = {number: len(problem.candidates[number].inputs) for number in costs}
    cost = dict(costs)
    rank = {number: part[problem.candidates[number].output] or 1.0 for number in costs}
    heap = [(cost[n] * rank[n], n) for n, count in waiting.items() if count == 0]
    heapq.heapify(heap)
    solution: dict[int, int] = {}
    while heap:
        _, number = heapq.heappop(heap)
        output = problem.candidates[number].output
        if output in solution:
            continue
        solution[output] = number
        for user in users[output]:
            waiting[user] -= 1
            cost[user] += cost[number] * share[output]
            if waiting[user] == 0:
                heapq.heappush(heap, (cost[user] * rank[user], user))
    return solution


def _learnt(
    problem: Problem, options: Mapping[int, tuple[int, ...]], order: tuple[int, ...]
) -> dict[int, float]:
    """The share of its cost at which each class is counted, after a round that took `order`."""
    uses = dict.fromkeys(options, 0)
    for number in order:
        for needed in problem.candidates[number].inputs:
            uses[needed] += 1
    return {c: 1.0 / max(1, count) for c, count in uses.items()}
