"""Dual ascent (Wong, 1984): barriers, and a bound that they prove, without a linear program.

Each candidate has a budget, its cost.  Some class that the roots need and that no exhausted
candidates derive is the top of a barrier: as much is charged to the candidates that enter it as the
least budget among them, and the bound rises by that.  The ascent ends when exhausted candidates
derive all roots.
"""

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from relax_egraph.extract.barriers import Barrier
from relax_egraph.extract.problem import Problem
from relax_egraph.extract.prune import Pruned

_EXHAUSTED = 1e-12
"""The share of its cost below which the budget of a candidate is exhausted."""


_SLACK = 1e-9
"""Sums of floats in another order differ by less than this share."""


@dataclass(frozen=True, slots=True)
class Ascent:
    """The `barriers` of an ascent, each with what was charged to it.

    No solution costs less than `bound`; none with candidate n less than ``bound + extra[n]``.
    """

    barriers: Mapping[Barrier, float]
    bound: float
    extra: Mapping[int, float]


def ascents(problem: Problem, pruned: Pruned, work: int, cost: float) -> tuple[Ascent, ...]:
    """Ascents whose barriers differ: they grow toward many, and toward few, alternatives.

    Each looks at `work` candidates at most.  One that proves `cost` is the last.
    """

    def alternatives(c: int) -> int:
        return len(pruned.options[c])

    many = _Ascending(problem, pruned, lambda cs: max(cs, key=lambda c: (alternatives(c), c)))
    first = many.run(work)
    if first.bound >= cost * (1 - _SLACK):
        return (first,)
    few = _Ascending(problem, pruned, lambda cs: min(cs, key=lambda c: (alternatives(c), c)))
    return first, few.run(work)


class _Ascending:
    """One ascent; `pick` chooses the class of several by which a barrier grows."""

    def __init__(self, problem: Problem, pruned: Pruned, pick: Callable[[list[int]], int]) -> None:
        self._candidates = problem.candidates
        self._options = pruned.options
        self._roots = problem.roots
        self._pick = pick
        numbers = [n for options in pruned.options.values() for n in options]
        self._budget = {n: problem.candidates[n].cost for n in numbers}
        self._exhausted = {n for n in numbers if self._budget[n] == 0}
        self._waiting = {n: len(problem.candidates[n].inputs) for n in numbers}
        self._users: dict[int, list[int]] = {c: [] for c in pruned.options}
        for number in numbers:
            for needed in problem.candidates[number].inputs:
                self._users[needed].append(number)
        self._derived: set[int] = set()
        self._derive([n for n in self._exhausted if self._waiting[n] == 0])

    def run(self, work: int) -> Ascent:
        """Ascend: the root whose barrier has the fewest candidates is next."""
        barriers: dict[Barrier, float] = {}
        pending = [(0, root) for root in self._roots]
        while pending and work > 0:
            size, root = heapq.heappop(pending)
            if root in self._derived:
                continue
            barrier, entering, seen = self._barrier(root)
            work -= seen
            if len(entering) > size and pending and pending[0][0] < len(entering):
                heapq.heappush(pending, (len(entering), root))
                continue
            barriers[barrier] = barriers.get(barrier, 0.0) + self._charge(entering)
            heapq.heappush(pending, (len(entering), root))
        return Ascent(barriers, sum(barriers.values()), self._budget)

    def _barrier(self, root: int) -> tuple[Barrier, list[int], int]:
        """A barrier around `root`, which is not derived, the candidates that enter it, and work.

        Each exhausted candidate of one of its classes needs one of them, so none enters.
        """
        classes, todo = {root}, [root]
        outside: list[int] = []
        seen = 0
        while todo:
            options = self._options[todo.pop()]
            seen += len(options)
            for number in options:
                if number not in self._exhausted:
                    outside.append(number)
                    continue
                inputs = self._candidates[number].inputs
                if classes.isdisjoint(inputs):
                    further = self._pick([d for d in inputs if d not in self._derived])
                    classes.add(further)
                    todo.append(further)
        entering = [n for n in outside if classes.isdisjoint(self._candidates[n].inputs)]
        return Barrier(root, frozenset(classes)), entering, seen

    def _charge(self, entering: list[int]) -> float:
        """Charge to each of `entering` the least of their budgets, and return that."""
        least = min(self._budget[number] for number in entering)
        for number in entering:
            self._budget[number] -= least
            if self._budget[number] <= _EXHAUSTED * self._candidates[number].cost:
                self._budget[number] = 0.0
                self._exhausted.add(number)
        self._derive([n for n in entering if n in self._exhausted and self._waiting[n] == 0])
        return least

    def _derive(self, ready: list[int]) -> None:
        """Derive the outputs of `ready` candidates, and all that exhausted ones make of them."""
        while ready:
            c = self._candidates[ready.pop()].output
            if c in self._derived:
                continue
            self._derived.add(c)
            for user in self._users[c]:
                self._waiting[user] -= 1
                if self._waiting[user] == 0 and user in self._exhausted:
                    ready.append(user)
