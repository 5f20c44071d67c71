"""The search for the cheapest solution: contract, prune, decompose, solve, combine.

A subproblem is solved by dynamic programming over frontiers.  If it is too wide for that, a linear
relaxation fixes candidates that no solution better than the incumbent takes (reduced-cost fixing);
the rest is smaller, and may decompose again.  What stays too wide goes to a MIP solver.
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
from relax_egraph.extract.problem import Problem, Solution, cost_in_order, in_order
from relax_egraph.extract.prune import Pruned, prune
from relax_egraph.extract.rows import Rows
from relax_egraph.extract.subproblems import subproblems_of

FEW_FRONTIERS = 1_000
"""How many frontiers of a subproblem are expanded before its relaxation is solved."""

MAX_FRONTIERS = 20_000
"""How many frontiers are expanded before a subproblem goes to the MIP solver."""

_SLACK = 1e-9
"""Sums of floats in another order differ by less than this share."""

_SMALLER = 0.99
"""A subproblem is searched anew if fixing leaves at most this share of its candidates."""


class Source(Enum):
    """The method that proves a bound; of several subproblems, the first here that one used."""

    SOLVER = "HiGHS"
    MULTIPLIERS = "multipliers of the linear program"
    FRONTIERS = "frontiers"
    NEEDED = "needed classes"
    SINGLE = "one candidate left for each class"


@dataclass(frozen=True, slots=True)
class Incumbent:
    """The best known solution and a bound; `stopped` is empty if the search was exhaustive."""

    solution: Solution
    cost: float
    bound: float
    source: Source
    stopped: str = ""

    def updated(self, other: "Incumbent") -> "Incumbent":
        """The cheaper solution and the higher bound of both; `stopped` is that of `other`."""
        cheaper = other if other.cost < self.cost else self
        proven = other if other.bound > self.bound else self
        return Incumbent(cheaper.solution, cheaper.cost, proven.bound, proven.source, other.stopped)


_Shape: TypeAlias = tuple[tuple[int, ...], tuple[tuple[int, tuple[int, ...], float], ...]]


@dataclass(slots=True)
class Search:
    """A search that ends at the time `end`; subproblems of equal structure are solved once."""

    end: float
    _known: dict[_Shape, Incumbent] = field(default_factory=dict["_Shape", Incumbent])

    def best(self, problem: Problem) -> Incumbent:
        """The best solution, subproblem by subproblem; the roots must be computable."""
        whole = contract(problem)
        chosen = dict(whole.fixed)
        solved: list[Incumbent] = []
        for part in subproblems_of(whole.problem, prune(whole.problem)):
            shape = _shape(part.problem)
            if shape not in self._known:
                self._known[shape] = self._solve(part.problem)
            solved.append(self._known[shape])
            for number in solved[-1].solution.values():
                output = part.problem.candidates[number].output
                chosen[output] = whole.numbers[part.numbers[number]]
        return Incumbent(
            chosen,
            math.fsum(each.cost for each in solved),
            math.fsum(each.bound for each in solved),
            min((each.source for each in solved), key=list(Source).index, default=Source.SINGLE),
            next((each.stopped for each in solved if each.stopped), ""),
        )

    def _solve(self, problem: Problem) -> Incumbent:
        """The best solution of one subproblem; with no time left, the greedy one."""
        pruned = prune(problem)
        start, cost = greedy(problem, pruned)
        if all(len(options) == 1 for options in pruned.options.values()):
            return Incumbent(start, cost, cost, Source.SINGLE)
        incumbent = Incumbent(start, cost, lower_bound(problem, pruned), Source.NEEDED)
        if incumbent.bound >= cost:
            return incumbent
        if not self._left():
            return replace(incumbent, stopped=mip.TIME_LIMIT)
        exact = _by_frontiers(problem, pruned, cost, FEW_FRONTIERS)
        return exact or self._by_relaxation(problem, pruned, incumbent)

    def _by_relaxation(self, problem: Problem, pruned: Pruned, incumbent: Incumbent) -> Incumbent:
        """The best solution, from `incumbent` on, after the relaxation has fixed candidates."""
        try:
            relaxed = mip.relax(problem, pruned, incumbent.cost, self._left())
        except mip.SolverError as error:
            return replace(incumbent, stopped=str(error))
        guided, cost = greedy(problem, pruned, relaxed.taken)
        incumbent = incumbent.updated(Incumbent(guided, cost, relaxed.bound, Source.MULTIPLIERS))
        if incumbent.cost - incumbent.bound <= _SLACK * incumbent.cost:
            return incumbent
        own, limit = set(incumbent.solution.values()), incumbent.cost * (1 + _SLACK)
        kept = [n for n, x in relaxed.extra.items() if n in own or relaxed.bound + x <= limit]
        if len(kept) <= _SMALLER * len(relaxed.extra):
            return incumbent.updated(self._among(problem, kept))
        exact = _by_frontiers(problem, pruned, incumbent.cost, MAX_FRONTIERS)
        return exact or self._by_solver(problem, pruned, relaxed.rows, incumbent)

    def _among(self, problem: Problem, kept: Sequence[int]) -> Incumbent:
        """The best solution that takes only the candidates numbered `kept`."""
        best = self.best(Problem(tuple(problem.candidates[n] for n in kept), problem.roots))
        solution = {c: kept[number] for c, number in best.solution.items()}
        source = min(best.source, Source.MULTIPLIERS, key=list(Source).index)
        return replace(best, solution=solution, source=source)

    def _by_solver(
        self, problem: Problem, pruned: Pruned, rows: Rows, incumbent: Incumbent
    ) -> Incumbent:
        start, cost = incumbent.solution, incumbent.cost
        try:
            outcome = mip.solve(problem, pruned, rows, start, cost, self._left())
        except mip.SolverError as error:
            return replace(incumbent, stopped=str(error))
        bound = incumbent.bound if outcome.bound is None else outcome.bound
        improved = replace(incumbent, bound=bound, source=Source.SOLVER, stopped=outcome.stopped)
        if outcome.solution is not None:
            chosen = set(outcome.solution.values())
            taken = {n: float(n in chosen) for group in pruned.options.values() for n in group}
            acyclic, cost = greedy(problem, pruned, taken)
            improved = replace(improved, solution=acyclic, cost=cost)
        return incumbent.updated(improved)

    def _left(self) -> float:
        return max(0.0, self.end - time.perf_counter())


def lower_bound(problem: Problem, pruned: Pruned) -> float:
    """The sum of the cheapest candidates of the classes that every solution contains."""
    return math.fsum(
        min(problem.candidates[n].cost for n in pruned.options[c]) for c in pruned.needed
    )


def _by_frontiers(problem: Problem, pruned: Pruned, cost: float, limit: int) -> Incumbent | None:
    exact = frontier.solve(problem, pruned, cost, limit)
    if exact is None:
        return None
    order = in_order(problem, exact)
    assert order is not None  # users are decided before their inputs, cycles as a whole
    cost = cost_in_order(problem, order)
    return Incumbent(exact, cost, cost, Source.FRONTIERS)


def _shape(problem: Problem) -> _Shape:
    """The structure of a problem, independent of the numbers of its classes."""
    place: dict[int, int] = {}
    for candidate in problem.candidates:
        place.setdefault(candidate.output, len(place))
    candidates = (
        (place[k.output], tuple(sorted(place[d] for d in k.inputs)), k.cost)
        for k in problem.candidates
    )
    return tuple(place[root] for root in problem.roots), tuple(candidates)
