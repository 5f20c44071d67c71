"""Choose the cheapest candidates, and say how good the choice is proven to be."""

import time

from relax_egraph.errors import ExtractionError
from relax_egraph.extract import mip
from relax_egraph.extract.problem import Problem, Selection, computable, cost_in_order, in_order
from relax_egraph.extract.search import Search

OPTIMAL = "optimal"

_CLOSED = 1e-6
"""A gap up to which a solution counts as optimal: the solver's tolerances and sums of floats."""


def select(problem: Problem, *, time_limit: float = 10.0) -> Selection:
    """The cheapest solution found in `time_limit` seconds, and how good it is proven to be.

    Without any time it is the greedy one.

    Raises `ExtractionError` if a root has no solution of finite cost; never otherwise.
    """
    started = time.perf_counter()
    made = computable(problem)
    if lost := [root for root in problem.roots if root not in made]:
        raise ExtractionError(f"class {lost[0]} is a root and has no finite program")
    found = Search(started + time_limit).best(problem)
    order = in_order(problem, found.solution)
    assert order is not None  # parts have no cycle among them, and none inside
    cost = cost_in_order(problem, order)
    bound = min(found.bound, cost)
    status = status_of(cost, bound, found.stopped)
    if status != OPTIMAL and found.stopped not in ("", mip.TIME_LIMIT):
        status = f"greedy: {found.stopped}"
    seconds = time.perf_counter() - started
    return Selection(order, cost, bound, status, found.source.value, seconds)


def status_of(cost: float, bound: float, why: str) -> str:
    """``optimal``, or the gap, and `why` there is one."""
    gap = (cost - bound) / cost if cost > 0 else 0.0
    if gap <= _CLOSED:
        return OPTIMAL
    return ", ".join(filter(None, (f"gap {100 * gap:.1f} %", why)))
