"""The search for the cheapest solution: contract, prune, decompose, solve, combine.

A small subproblem that is long rather than wide is solved by dynamic programming over frontiers.
Of others barriers prove a bound: first by dual ascent, in milliseconds, which excludes most
frontiers; then, of wide ones, as rows of a linear relaxation.  Both fix candidates that no solution
better than the incumbent takes (reduced-cost fixing); the rest is smaller, and may decompose again.
What stays open is left to frontiers once more and, if it is too wide for that, to a MIP solver.
"""

import math
import time
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TypeAlias

from relax_egraph.extract import frontier, mip
from relax_egraph.extract.contract import contract
from relax_egraph.extract.dual_ascent import Ascent, ascents
from relax_egraph.extract.greedy import greedy
from relax_egraph.extract.mip import TIME_LIMIT
from relax_egraph.extract.problem import Problem, Solution
from relax_egraph.extract.prune import Pruned, prune
from relax_egraph.extract.rows import Rows
from relax_egraph.extract.subproblems import subproblems_of

ASCENT_WORK = 300_000
"""How many candidates an ascent looks at."""

FEW_FRONTIERS = 4
"""How many frontiers are expanded for each candidate before an ascent, which takes about as long.
"""

SOME_FRONTIERS = 10_000
"""How many are expanded after an ascent, whose bounds exclude most: chains of layers take fewer."""

WEAK = 0.6
"""An ascent that proves at most this share of the cost shows that barriers do not help."""

MAX_FRONTIERS = 20_000
"""How many frontiers are expanded before a subproblem goes to the MIP solver."""

CLOSE = "close enough"
"""The reason of a result that is not proven optimal because its gap is small."""

_SLACK = 1e-9
"""Sums of floats in another order differ by less than this share."""

_MUCH_SMALLER = 0.6
"""A relaxation is not made tighter if it leaves at most this share of the candidates."""

_SMALLER = 0.99
"""A subproblem is searched anew if fixing leaves at most this share of its candidates."""


class Source(Enum):
    """The method that proves a bound; of several subproblems, the first here that one used."""

    SOLVER = "HiGHS"
    MULTIPLIERS = "multipliers of the linear program"
    ASCENT = "dual ascent"
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

    @property
    def closed(self) -> bool:
        """Whether the bound reaches the cost."""
        return self.cost - self.bound <= _SLACK * self.cost

    def proven(self, bound: float, source: Source) -> "Incumbent":
        """The same solution, with `bound` if it is higher."""
        return replace(self, bound=bound, source=source) if bound > self.bound else self

    def updated(self, other: "Incumbent") -> "Incumbent":
        """The cheaper solution and the higher bound of both; `stopped` is that of `other`."""
        cheaper = other if other.cost < self.cost else self
        proven = other if other.bound > self.bound else self
        return Incumbent(cheaper.solution, cheaper.cost, proven.bound, proven.source, other.stopped)


_Shape: TypeAlias = tuple[tuple[int, ...], tuple[tuple[int, tuple[int, ...], float], ...]]


@dataclass(slots=True)
class Search:
    """A search until `end`, of processor time; subproblems of equal structure are solved once.

    A subproblem whose gap is at most `gap` is left as it is, once what remains takes long.
    """

    end: float
    gap: float = 0.0
    _known: dict[_Shape, Incumbent] = field(default_factory=dict["_Shape", Incumbent])

    def best(self, problem: Problem, start: Set[int] = frozenset()) -> Incumbent:
        """The best solution, subproblem by subproblem; the roots must be computable.

        `start` has the candidates of a solution to begin with, or of a part of one.
        """
        whole = contract(problem)
        chosen = dict(whole.fixed)
        solved: list[Incumbent] = []
        for part in subproblems_of(whole.problem, prune(whole.problem)):
            shape = _shape(part.problem)
            if shape not in self._known:
                own = {n for n, k in enumerate(part.numbers) if whole.numbers[k] in start}
                self._known[shape] = self._solve(part.problem, own)
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

    def _solve(self, problem: Problem, start: Set[int]) -> Incumbent:
        """The best solution of one subproblem; with no time left, the greedy one."""
        pruned = prune(problem)
        solution, cost = greedy(problem, pruned)
        if all(len(options) == 1 for options in pruned.options.values()):
            return Incumbent(solution, cost, cost, Source.SINGLE)
        incumbent = Incumbent(solution, cost, lower_bound(problem, pruned), Source.NEEDED)
        if start:
            incumbent = _guided(problem, pruned, dict.fromkeys(start, 1.0), incumbent)
        if incumbent.closed:
            return incumbent
        if not self._left():
            return replace(incumbent, stopped=TIME_LIMIT)
        few, unproven = FEW_FRONTIERS * len(problem.candidates), frontier.Fixing()
        few = min(few, SOME_FRONTIERS)
        exact = self._by_frontiers(problem, pruned, unproven, incumbent, few)
        if exact:
            return exact
        tried = ascents(problem, pruned, ASCENT_WORK, incumbent.cost)
        best = max(tried, key=lambda ascent: ascent.bound)
        incumbent = incumbent.proven(best.bound, Source.ASCENT)
        if incumbent.closed:
            return incumbent
        exhausted = {n: 1.0 for n, extra in best.extra.items() if extra == 0}
        incumbent = _guided(problem, pruned, exhausted, incumbent)
        if incumbent.closed:
            return incumbent
        proven = frontier.Fixing(best.bound, best.extra)
        limit = MAX_FRONTIERS if best.bound < WEAK * incumbent.cost else SOME_FRONTIERS
        exact = self._by_frontiers(problem, pruned, proven, incumbent, limit)
        return exact or self._relax(problem, pruned, tried, incumbent)

    def _relax(
        self, problem: Problem, pruned: Pruned, tried: Sequence[Ascent], incumbent: Incumbent
    ) -> Incumbent:
        """The best solution, from `incumbent` on, after relaxations have fixed candidates."""
        barriers = dict.fromkeys(barrier for ascent in tried for barrier in ascent.barriers)
        cost, relaxed = incumbent.cost, None
        try:
            for relaxed in mip.relaxations(problem, pruned, barriers, cost, self._left()):
                incumbent = incumbent.proven(relaxed.bound, Source.MULTIPLIERS)
                if incumbent.closed:
                    return incumbent
                if len(relaxed.open(cost)) <= _MUCH_SMALLER * len(relaxed.extra):
                    break
        except mip.SolverError as error:
            incumbent = replace(incumbent, stopped=str(error))
        if relaxed is None:
            return incumbent
        incumbent = _guided(problem, pruned, relaxed.taken, incumbent)
        if incumbent.closed or incumbent.stopped:
            return incumbent
        own = frozenset(incumbent.solution.values())
        kept = sorted(own.union(relaxed.open(incumbent.cost * (1 + _SLACK))))
        if len(kept) <= _SMALLER * len(relaxed.extra):
            return incumbent.updated(self._among(problem, kept, own))
        if incumbent.cost - incumbent.bound <= self.gap * incumbent.cost:
            return replace(incumbent, stopped=CLOSE)
        proven = frontier.Fixing(relaxed.bound, relaxed.extra)
        exact = self._by_frontiers(problem, pruned, proven, incumbent, MAX_FRONTIERS)
        return exact or self._by_solver(problem, pruned, relaxed.rows, incumbent)

    def _by_frontiers(
        self,
        problem: Problem,
        pruned: Pruned,
        proven: frontier.Fixing,
        incumbent: Incumbent,
        limit: int,
    ) -> Incumbent | None:
        """An optimal solution, `incumbent` if it is one.

        ``None`` if it takes more than `limit` frontiers, in each order.
        """
        known = incumbent.cost
        exact = frontier.solve(problem, pruned, proven, known, limit, self.end)
        if exact is None:
            return None
        cost = math.fsum(problem.candidates[number].cost for number in exact.values())
        if incumbent.cost - cost <= _SLACK * cost:
            return replace(incumbent, bound=incumbent.cost, source=Source.FRONTIERS)
        return Incumbent(exact, cost, cost, Source.FRONTIERS)

    def _among(self, problem: Problem, kept: Sequence[int], start: Set[int]) -> Incumbent:
        """The best solution that takes only the candidates numbered `kept`."""
        smaller = Problem(tuple(problem.candidates[n] for n in kept), problem.roots)
        best = self.best(smaller, {place for place, n in enumerate(kept) if n in start})
        solution = {c: kept[number] for c, number in best.solution.items()}
        source = min(best.source, Source.MULTIPLIERS, key=list(Source).index)
        return replace(best, solution=solution, source=source)

    def _by_solver(
        self, problem: Problem, pruned: Pruned, rows: Rows, incumbent: Incumbent
    ) -> Incumbent:
        try:
            outcome = mip.solve(
                *(problem, pruned, rows, incumbent.solution, incumbent.cost),
                *(self._left(), self.gap),
            )
        except mip.SolverError as error:
            return replace(incumbent, stopped=str(error))
        incumbent = replace(incumbent, stopped=outcome.stopped)
        if outcome.bound is not None:
            incumbent = incumbent.proven(outcome.bound, Source.SOLVER)
        if outcome.solution is not None:
            taken = dict.fromkeys(outcome.solution.values(), 1.0)
            incumbent = _guided(problem, pruned, taken, incumbent)
        return (
            incumbent if incumbent.closed else replace(incumbent, stopped=outcome.stopped or CLOSE)
        )

    def _left(self) -> float:
        return max(0.0, self.end - time.thread_time())


def lower_bound(problem: Problem, pruned: Pruned) -> float:
    """The sum of the cheapest candidates of the classes that every solution contains."""
    return math.fsum(
        min(problem.candidates[n].cost for n in pruned.options[c]) for c in pruned.needed
    )


def _guided(
    problem: Problem, pruned: Pruned, taken: Mapping[int, float], incumbent: Incumbent
) -> Incumbent:
    """`incumbent`, or the greedy solution guided by `taken` if that is cheaper."""
    solution, cost = greedy(problem, pruned, taken)
    if cost >= incumbent.cost * (1 - _SLACK):
        return incumbent
    return replace(incumbent, solution=solution, cost=cost)


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
