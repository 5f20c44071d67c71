"""Choose the cheapest candidates: prune, start greedily, solve, keep the best of what was found."""

import math
import time

from relax_egraph.errors import ExtractionError
from relax_egraph.extract import mip
from relax_egraph.extract.greedy import greedy
from relax_egraph.extract.problem import Problem, Selection, computable, in_order
from relax_egraph.extract.prune import Pruned, prune

_CLOSED = 1e-6
"""A gap up to which a solution counts as optimal: the solver's tolerances and sums of floats."""


def select(problem: Problem, *, time_limit: float = 10.0) -> Selection:
    """The cheapest solution found in `time_limit` seconds, and how good it is proven to be.

    Raises `ExtractionError` if a root has no solution of finite cost; never otherwise.
    """
    started = time.perf_counter()
    made = computable(problem)
    if lost := [root for root in problem.roots if root not in made]:
        raise ExtractionError(f"class {lost[0]} is a root and has no finite program")
    pruned = prune(problem)
    start, cost = greedy(problem, pruned)
    order = in_order(problem, start)
    assert order is not None  # the greedy solution is never cyclic
    bound, source, stopped = _floor(problem, pruned), "needed classes", ""
    if all(len(options) == 1 for options in pruned.options.values()):
        bound, source = cost, "one candidate left for each class"
    elif bound < cost:
        left = max(0.0, time_limit - (time.perf_counter() - started))
        outcome = mip.solve(problem, pruned, start, cost, left)
        stopped = outcome.stopped
        if outcome.bound is not None and outcome.bound > bound:
            bound, source = outcome.bound, "HiGHS"
        better = order if outcome.solution is None else in_order(problem, outcome.solution)
        if better is None:
            stopped = "the solver's answer is cyclic"
        elif _cost(problem, better) < cost:
            order, cost = better, _cost(problem, better)
    bound = min(bound, cost)
    result = Selection(order, cost, bound, "", source, time.perf_counter() - started)
    return Selection(order, cost, bound, _status(result.gap, stopped), source, result.seconds)


def _cost(problem: Problem, order: tuple[int, ...]) -> float:
    return math.fsum(problem.candidates[number].cost for number in order)


def _floor(problem: Problem, pruned: Pruned) -> float:
    """The sum of the cheapest candidates of the classes that every solution needs."""
    return math.fsum(
        min(problem.candidates[n].cost for n in pruned.options[c]) for c in pruned.needed
    )


def _status(gap: float, stopped: str) -> str:
    if gap <= _CLOSED:
        return "optimal"
    if stopped in ("", mip.TIME_LIMIT):
        return ", ".join(filter(None, (f"gap {100 * gap:.1f} %", stopped)))
    return f"greedy: {stopped}"
