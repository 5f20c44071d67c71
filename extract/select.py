"""Selection of the cheapest candidates, with a proof of how good it is."""

import time
from collections.abc import Set

from relax_egraph.errors import ExtractionError
from relax_egraph.extract.effort import THOROUGH, Effort
from relax_egraph.extract.mip import TIME_LIMIT
from relax_egraph.extract.problem import (
    OPTIMAL,
    Problem,
    Selection,
    computable,
    cost_in_order,
    in_order,
)
from relax_egraph.extract.search import CLOSE, Search

_CLOSED = 1e-6
"""A gap up to which a solution counts as optimal: the solver's tolerances and sums of floats."""


def select(
    problem: Problem,
    *,
    effort: Effort = THOROUGH,
    start: Set[int] = frozenset(),
) -> Selection:
    """The cheapest solution that `effort` finds, with a bound; the greedy one without time.

    `start` has the candidates of a solution to begin with.  Raises `ExtractionError` only if a
    root has no solution of finite cost.
    """
    started = time.perf_counter()
    derivable = computable(problem)
    if lost := [root for root in problem.roots if root not in derivable]:
        raise ExtractionError(f"class {lost[0]} is a root and has no finite program")
    best = Search(time.thread_time() + effort.seconds, effort.gap).best(problem, start)
    order = in_order(problem, best.solution)
    assert order is not None  # subproblems are acyclic, and so are their solutions
    cost = cost_in_order(problem, order)
    bound = min(best.bound, cost)
    status = status_of(cost, bound, best.stopped)
    if status != OPTIMAL and best.stopped not in ("", CLOSE, TIME_LIMIT):
        status = f"greedy: {best.stopped}"
    seconds = time.perf_counter() - started
    return Selection(order, cost, bound, status, best.source.value, seconds)


def status_of(cost: float, bound: float, reason: str) -> str:
    """``optimal``, or the gap and the `reason` for it."""
    gap = (cost - bound) / cost if cost > 0 else 0.0
    if gap <= _CLOSED:
        return OPTIMAL
    return ", ".join(filter(None, (f"gap {100 * gap:.1f} %", reason)))
