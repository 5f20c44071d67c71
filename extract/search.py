"""The search for the cheapest solution: contract, prune, cut into parts, solve, put together.

A part is solved by its frontiers.  If it is too wide for that, a linear relaxation says which
candidates no solution takes that is better than one that is known; what is left is smaller, and
may fall into parts again.  What stays too wide goes to a solver of mixed-integer programs.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TypeAlias

from relax_egraph.extract import frontier, mip
from relax_egraph.extract.contract import contract
from relax_egraph.extract.greedy import greedy
from relax_egraph.extract.parts import parts_of
from relax_egraph.extract.problem import Problem, Solution, cost_in_order, in_order
from relax_egraph.extract.prune import Pruned, prune
from relax_egraph.extract.rows import Rows

FEW_FRONTIERS = 1_000
"""How many frontiers of a part are looked at before its relaxation is."""

MOST_FRONTIERS = 20_000
"""How many frontiers are looked at before a part goes to the solver."""

_SLACK = 1e-9
"""Sums of floats in another order differ by less than this share."""

_SMALLER = 0.99
"""The share of its candidates that may be left of a part for it to be begun anew."""


class Source(Enum):
    """Who claims a bound; of several parts, the first here that any of them names."""

    SOLVER = "HiGHS"
    MULTIPLIERS = "multipliers of the linear program"
    FRONTIERS = "frontiers"
    NEEDED = "needed classes"
    SINGLE = "one candidate left for each class"


@dataclass(frozen=True, slots=True)
class Found:
    """A solution and what is known of it; `stopped` is empty if nothing was left out."""

    solution: Solution
    cost: float
    bound: float
    source: Source
    stopped: str = ""

    def or_better(self, other: "Found") -> "Found":
        """What is known together: the cheaper solution, the higher bound, the later end."""
        cheaper = other if other.cost < self.cost else self
        proven = other if other.bound > self.bound else self
        return Found(cheaper.solution, cheaper.cost, proven.bound, proven.source, other.stopped)


_Shape: TypeAlias = tuple[tuple[int, ...], tuple[tuple[int, tuple[int, ...], float], ...]]


@dataclass(slots=True)
class Search:
    """A search that ends at the time `end`; parts that differ in numbers only are solved once."""

    end: float
    _known: dict[_Shape, Found] = field(default_factory=dict["_Shape", Found])

    def best(self, problem: Problem) -> Found:
        """The best solution found, part by part; the roots must be computable."""
        whole = contract(problem)
        chosen = dict(whole.fixed)
        found: list[Found] = []
        for part in parts_of(whole.problem, prune(whole.problem)):
            shape = _shape(part.problem)
            if shape not in self._known:
                self._known[shape] = self._solved(part.problem)
            found.append(self._known[shape])
            for number in found[-1].solution.values():
                output = part.problem.candidates[number].output
                chosen[output] = whole.numbers[part.numbers[number]]
        return Found(
            chosen,
            math.fsum(each.cost for each in found),
            math.fsum(each.bound for each in found),
            min((each.source for each in found), key=list(Source).index, default=Source.SINGLE),
            next((each.stopped for each in found if each.stopped), ""),
        )

    def _solved(self, problem: Problem) -> Found:
        """The best solution found of one part; with no time left, the greedy one."""
        pruned = prune(problem)
        start, cost = greedy(problem, pruned)
        if all(len(options) == 1 for options in pruned.options.values()):
            return Found(start, cost, cost, Source.SINGLE)
        known = Found(start, cost, floor(problem, pruned), Source.NEEDED)
        if known.bound >= cost:
            return known
        if not self._left():
            return replace(known, stopped=mip.TIME_LIMIT)
        exact = _by_frontiers(problem, pruned, cost, FEW_FRONTIERS)
        return exact or self._by_relaxation(problem, pruned, known)

    def _by_relaxation(self, problem: Problem, pruned: Pruned, known: Found) -> Found:
        """The best solution found, beginning with `known`, by what the relaxation rules out."""
        try:
            relaxed = mip.relax(problem, pruned, known.cost, self._left())
        except mip.SolverError as error:
            return replace(known, stopped=str(error))
        guided, cost = greedy(problem, pruned, relaxed.taken)
        known = known.or_better(Found(guided, cost, relaxed.bound, Source.MULTIPLIERS))
        if known.cost - known.bound <= _SLACK * known.cost:
            return known
        mine, most = set(known.solution.values()), known.cost * (1 + _SLACK)
        kept = [n for n, x in relaxed.extra.items() if n in mine or relaxed.bound + x <= most]
        if len(kept) <= _SMALLER * len(relaxed.extra):
            return known.or_better(self._among(problem, kept))
        exact = _by_frontiers(problem, pruned, known.cost, MOST_FRONTIERS)
        return exact or self._by_solver(problem, pruned, relaxed.rows, known)

    def _among(self, problem: Problem, kept: Sequence[int]) -> Found:
        """The best solution found that takes only candidates of the numbers `kept`."""
        found = self.best(Problem(tuple(problem.candidates[n] for n in kept), problem.roots))
        solution = {c: kept[number] for c, number in found.solution.items()}
        source = min(found.source, Source.MULTIPLIERS, key=list(Source).index)
        return replace(found, solution=solution, source=source)

    def _by_solver(self, problem: Problem, pruned: Pruned, rows: Rows, known: Found) -> Found:
        try:
            outcome = mip.solve(problem, pruned, rows, known.solution, known.cost, self._left())
        except mip.SolverError as error:
            return replace(known, stopped=str(error))
        bound = known.bound if outcome.bound is None else outcome.bound
        found = replace(known, bound=bound, source=Source.SOLVER, stopped=outcome.stopped)
        if outcome.solution is not None:
            chosen = set(outcome.solution.values())
            taken = {n: float(n in chosen) for group in pruned.options.values() for n in group}
            like, cost = greedy(problem, pruned, taken)
            found = replace(found, solution=like, cost=cost)
        return known.or_better(found)

    def _left(self) -> float:
        return max(0.0, self.end - time.perf_counter())


def floor(problem: Problem, pruned: Pruned) -> float:
    """The sum of the cheapest candidates of the classes that every solution needs."""
    return math.fsum(
        min(problem.candidates[n].cost for n in pruned.options[c]) for c in pruned.needed
    )


def _by_frontiers(problem: Problem, pruned: Pruned, cost: float, most: int) -> Found | None:
    exact = frontier.solve(problem, pruned, cost, most)
    if exact is None:
        return None
    order = in_order(problem, exact)
    assert order is not None  # users are decided before what they need, cycles as a whole
    cost = cost_in_order(problem, order)
    return Found(exact, cost, cost, Source.FRONTIERS)


def _shape(problem: Problem) -> _Shape:
    """What parts that differ only in the numbers of their classes have in common."""
    place: dict[int, int] = {}
    for candidate in problem.candidates:
        place.setdefault(candidate.output, len(place))
    candidates = (
        (place[k.output], tuple(sorted(place[d] for d in k.inputs)), k.cost)
        for k in problem.candidates
    )
    return tuple(place[root] for root in problem.roots), tuple(candidates)
