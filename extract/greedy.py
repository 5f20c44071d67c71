"""The greedy heuristic: classes are settled in order of cost, cheapest first (as in Dijkstra).

A class is settled by a candidate whose inputs are settled, so a solution is never cyclic.  The cost
of an input is divided among its users; their number is learned from round to round.  Rounds
alternate between the whole cost of a class and the share that each user pays, so that a
multi-output kernel is considered before kernels with one of its outputs.
"""

import heapq
import math
from collections.abc import Mapping
from types import MappingProxyType

from relax_egraph.extract.problem import Problem, Solution, in_order
from relax_egraph.extract.prune import Pruned

_ROUNDS = 6


def greedy(
    problem: Problem, pruned: Pruned, taken: Mapping[int, float] = MappingProxyType({})
) -> tuple[Solution, float]:
    """The best solution of a few rounds, and its cost.  A round takes O(n log n).

    `taken` guides the heuristic by an incomplete, fractional or cyclic solution: the share of each
    candidate that this solution takes is free.
    """
    costs = {
        number: problem.candidates[number].cost * (1.0 - taken.get(number, 0.0))
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
        c: 1.0 / max(1, len({problem.candidates[n].output for n in using}))
        for c, using in users.items()
    }
    for number in range(_ROUNDS):
        share.update(dict.fromkeys(pruned.needed, 0.0))
        part = dict.fromkeys(share, 1.0) if number % 2 else share
        solution = _settle(problem, costs, users, share, part)
        order = in_order(problem, solution)
        assert order is not None  # each candidate is taken after its inputs
        cost = math.fsum(problem.candidates[n].cost for n in order)
        if cost < least:
            best, least = {problem.candidates[n].output: n for n in order}, cost
        share = _shares(problem, pruned.options, order)
    return best, least


def _settle(
    problem: Problem,
    costs: Mapping[int, float],
    users: Mapping[int, list[int]],
    share: Mapping[int, float],
    part: Mapping[int, float],
) -> Solution:
    """Settle classes in order of their cost times `part`, where that is not zero."""
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


def _shares(
    problem: Problem, options: Mapping[int, tuple[int, ...]], order: tuple[int, ...]
) -> dict[int, float]:
    """The share of its cost that each user of a class pays, after a round that took `order`."""
    uses = dict.fromkeys(options, 0)
    for number in order:
        for needed in problem.candidates[number].inputs:
            uses[needed] += 1
    return {c: 1.0 / max(1, count) for c, count in uses.items()}
