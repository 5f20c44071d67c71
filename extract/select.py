"""Choose the cheapest candidates: prune, cut into parts, solve each, put them together.

A part is solved by its frontiers, or if it is too wide for that, by a solver of mixed-integer
programs that begins with a greedy solution.
"""

import math
import time
from dataclasses import dataclass

from relax_egraph.errors import ExtractionError
from relax_egraph.extract import frontier, mip
from relax_egraph.extract.greedy import greedy
from relax_egraph.extract.parts import parts_of
from relax_egraph.extract.problem import Problem, Selection, Solution, computable, in_order
from relax_egraph.extract.prune import Pruned, prune

_CLOSED = 1e-6
"""A gap up to which a solution counts as optimal: the solver's tolerances and sums of floats."""

_SOURCES = ("HiGHS", "frontiers", "needed classes", "one candidate left for each class")
"""Who claims a bound; of several parts, the first here that any of them names."""


@dataclass(frozen=True, slots=True)
class _Solved:
    """A solution of a part and what is known of it; `stopped` is empty if nothing was left out."""

    solution: Solution
    bound: float
    source: str
    stopped: str = ""


def select(problem: Problem, *, time_limit: float = 10.0) -> Selection:
    """The cheapest solution found in `time_limit` seconds, and how good it is proven to be.

    Raises `ExtractionError` if a root has no solution of finite cost; never otherwise.
    """
    started = time.perf_counter()
    made = computable(problem)
    if lost := [root for root in problem.roots if root not in made]:
        raise ExtractionError(f"class {lost[0]} is a root and has no finite program")
    chosen: dict[int, int] = {}
    found: list[_Solved] = []
    for part in parts_of(problem, prune(problem)):
        left = max(0.0, time_limit - (time.perf_counter() - started))
        solved = _solve(part.problem, left)
        chosen.update({c: part.numbers[n] for c, n in solved.solution.items()})
        found.append(solved)
    order = in_order(problem, chosen)
    assert order is not None  # parts have no cycle among them, and none inside
    cost = _cost(problem, order)
    bound = min(math.fsum(solved.bound for solved in found), cost)
    source = min((solved.source for solved in found), key=_SOURCES.index, default=_SOURCES[-1])
    stopped = next((solved.stopped for solved in found if solved.stopped), "")
    result = Selection(order, cost, bound, "", source, time.perf_counter() - started)
    return Selection(order, cost, bound, _status(result.gap, stopped), source, result.seconds)


def _solve(problem: Problem, time_limit: float) -> _Solved:
    """The best solution of one part that is found in `time_limit` seconds."""
    pruned = prune(problem)
    start, cost = greedy(problem, pruned)
    if all(len(options) == 1 for options in pruned.options.values()):
        return _Solved(start, cost, _SOURCES[3])
    floor = _floor(problem, pruned)
    if floor >= cost:
        return _Solved(start, cost, _SOURCES[2])
    exact = frontier.solve(problem, pruned, cost)
    if exact is not None:
        order = in_order(problem, exact)
        assert order is not None  # users are decided before what they need, cycles as a whole
        return _Solved(exact, _cost(problem, order), _SOURCES[1])
    outcome = mip.solve(problem, pruned, start, cost, time_limit)
    bound, source = floor, _SOURCES[2]
    if outcome.bound is not None and outcome.bound > floor:
        bound, source = outcome.bound, _SOURCES[0]
    if outcome.solution is None:
        return _Solved(start, bound, source, outcome.stopped)
    better = in_order(problem, outcome.solution)
    if better is None:
        return _Solved(start, bound, source, "the solver's answer is cyclic")
    solution = outcome.solution if _cost(problem, better) < cost else start
    return _Solved(solution, bound, source, outcome.stopped)


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
