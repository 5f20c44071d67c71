"""The choice problem solved exactly, by frontiers; for problems that are long rather than wide.

Classes are decided users first.  All that matters of what was decided is which of the classes
still undecided are wanted, the *frontier*, and the least cost of coming to it: two ways to the same
frontier are one, one that costs more and wants more is of no use, and neither is one that with
what it still has to pay is above a cost that is known to suffice.  Classes of one cycle are
decided together.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from relax_egraph.extract.problem import Problem, Solution
from relax_egraph.extract.prune import Pruned

MOST_INSIDE = 1_000
"""How many ways to make classes of one cycle are looked at."""

_COMPARED = 400
"""Of how many frontiers at one place each is compared with all cheaper ones."""

_SLACK = 1e-9
"""Sums of floats in another order differ by less than this share."""


@dataclass(frozen=True, slots=True)
class _Step:
    """Ways on: `cost` and candidates `chosen` make some classes, and want the classes `wanted`."""

    cost: float
    wanted: int
    chosen: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Arrival:
    """The cheapest way found to a frontier: from `before`, by `chosen`."""

    cost: float
    before: int
    chosen: tuple[int, ...]


class _TooWideError(Exception):
    """There are more frontiers, or ways around a cycle, than are looked at."""


def solve(problem: Problem, pruned: Pruned, enough: float, most: int) -> Solution | None:
    """The best solution; ``None`` if it takes more than `most` frontiers.

    A solution of cost `enough` is known.
    """
    try:
        return _Search(problem, pruned).best(enough, most)
    except _TooWideError:
        return None


class _Search:
    """Classes are bits, users below what they need; the classes of a component are neighbours."""

    def __init__(self, problem: Problem, pruned: Pruned) -> None:
        self._problem = problem
        self._pruned = pruned
        self._order = list(pruned.options)[::-1]
        self._bit = {c: 1 << place for place, c in enumerate(self._order)}
        self._group = [pruned.component[c] for c in self._order]
        members: dict[int, int] = {}
        for c in self._order:
            component = pruned.component[c]
            members[component] = members.get(component, 0) | self._bit[c]
        self._members = members
        self._least = _least(problem, pruned)
        self._steps: dict[int, tuple[_Step, ...]] = {}
        self._looked_inside = 0

    def best(self, enough: float, most_frontiers: int) -> Solution:
        """The best solution, which costs at most `enough`."""
        start = sum(self._bit[root] for root in self._problem.roots)
        arrivals: dict[int, dict[int, _Arrival]] = {g: {} for g in self._members}
        end: dict[int, _Arrival] = {}
        (arrivals[self._next(start)] if start else end)[start] = _Arrival(0.0, 0, ())
        most, looked = enough * (1 + _SLACK), 0
        for group, members in self._members.items():
            found = arrivals[group]
            for frontier in _useful(found):
                looked += 1
                if looked > most_frontiers:
                    raise _TooWideError
                for step in self._ways(frontier & members):
                    cost = found[frontier].cost + step.cost
                    left = (frontier & ~members) | step.wanted
                    if cost + self._owed(left) > most:
                        continue
                    place = arrivals[self._next(left)] if left else end
                    if left not in place or cost < place[left].cost:
                        place[left] = _Arrival(cost, frontier, step.chosen)
        solution: dict[int, int] = {}
        at, arrival = 0, end[0]
        while arrival.chosen:
            for number in arrival.chosen:
                solution[self._problem.candidates[number].output] = number
            at = arrival.before
            arrival = arrivals[self._next(at)][at]
        return solution

    def _first(self, classes: int) -> int:
        return (classes & -classes).bit_length() - 1

    def _next(self, frontier: int) -> int:
        """The component that is decided next."""
        return self._group[self._first(frontier)]

    def _owed(self, frontier: int) -> float:
        """What making the first class of a frontier costs at least."""
        return self._least[self._order[self._first(frontier)]] if frontier else 0.0

    def _ways(self, wanted: int) -> tuple[_Step, ...]:
        """The useful ways to make the classes `wanted`, all of one component."""
        if wanted not in self._steps:
            self._looked_inside = 0
            every = sorted(self._inside(wanted, {}), key=lambda step: step.cost)
            kept: list[_Step] = []
            for step in every:
                if not any(better.wanted & ~step.wanted == 0 for better in kept):
                    kept.append(step)
            self._steps[wanted] = tuple(kept)
        return self._steps[wanted]

    def _inside(self, wanted: int, chosen: dict[int, int]) -> Iterator[_Step]:
        """All ways to make `wanted` besides what is `chosen` already, none of them a cycle."""
        missing = wanted & ~sum(self._bit[c] for c in chosen)
        if not missing:
            if self._acyclic(chosen):
                yield self._step(chosen)
            return
        c = self._order[self._first(missing)]
        members = self._members[self._pruned.component[c]]
        for number in self._pruned.options[c]:
            self._looked_inside += 1
            if self._looked_inside > MOST_INSIDE:
                raise _TooWideError
            inputs = sum(self._bit[d] for d in self._problem.candidates[number].inputs)
            yield from self._inside(wanted | (inputs & members), {**chosen, c: number})

    def _acyclic(self, chosen: Mapping[int, int]) -> bool:
        done: set[int] = set()
        while len(done) < len(chosen):
            ready = {
                c
                for c, number in chosen.items()
                if c not in done and all(d in done or d not in chosen for d in self._inputs(number))
            }
            if not ready:
                return False
            done |= ready
        return True

    def _inputs(self, number: int) -> frozenset[int]:
        return self._problem.candidates[number].inputs

    def _step(self, chosen: Mapping[int, int]) -> _Step:
        wanted = 0
        for number in chosen.values():
            for d in self._inputs(number):
                wanted |= 0 if d in chosen else self._bit[d]
        cost = sum(self._problem.candidates[number].cost for number in chosen.values())
        return _Step(cost, wanted, tuple(chosen.values()))


def _useful(found: Mapping[int, _Arrival]) -> list[int]:
    """The frontiers, cheapest first, without those that want more than a cheaper one does."""
    ranked = sorted(found, key=lambda frontier: found[frontier].cost)
    kept: list[int] = []
    for frontier in ranked:
        if not any(better & ~frontier == 0 for better in kept[:_COMPARED]):
            kept.append(frontier)
    return kept


def _least(problem: Problem, pruned: Pruned) -> dict[int, float]:
    """For each class a cost that making it is never below."""
    least: dict[int, float] = {}
    for c, numbers in pruned.options.items():
        costs: list[float] = []
        for number in numbers:
            candidate = problem.candidates[number]
            below = max([least.get(d, 0.0) for d in candidate.inputs], default=0.0)
            costs.append(candidate.cost + below)
        least[c] = min(costs)
    return least
