"""Exact dynamic programming over frontiers, for problems that are long rather than wide.

Classes are decided users first.  The state is the *frontier*: the set of undecided classes that the
decided ones need, with the least cost of reaching it.  A state is pruned if another costs no more
and needs a subset, or if it cannot lead to a solution as cheap as a known one: by its cost and a
lower bound of the rest, or by what its candidates cost beyond a proven bound.  The
classes of a cycle are decided together.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from relax_egraph.extract.orders import orders_of
from relax_egraph.extract.problem import Problem, Solution
from relax_egraph.extract.prune import Pruned

MAX_PER_CYCLE = 1_000
"""How many selections for the classes of one cycle are enumerated."""

_WIDEST = 1 / 4
"""The share of all frontiers that one place has at most, in a problem that is long, not wide."""

_EARLY, _PACE = (1 / 20, 3 / 10), 2 / 3
"""Between these shares of the limit, the share of decided classes is at least so much of theirs."""

_COMPARED = 400
"""Each frontier is compared with at most so many cheaper ones."""

_SLACK = 1e-9
"""Sums of floats in another order differ by less than this share."""


@dataclass(frozen=True, slots=True)
class _Step:
    """A transition: the candidates `chosen` at `cost`, which need the classes `wanted`.

    No solution with them costs less than the proven bound and `extra`.
    """

    cost: float
    extra: float
    wanted: int
    chosen: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Arrival:
    """The cheapest known path to a frontier: from the frontier `before`, by `chosen`."""

    cost: float
    extra: float
    before: int
    chosen: tuple[int, ...]


class _TooWideError(Exception):
    """There are more frontiers than the limit; or no time."""


class _TangledError(Exception):
    """There are more selections for a cycle than the limit, in any order."""


@dataclass(frozen=True, slots=True)
class Fixing:
    """No solution costs less than `bound`; none with candidate n less than ``bound + extra[n]``.

    A candidate that is not in `extra` adds nothing.
    """

    bound: float = 0.0
    extra: Mapping[int, float] = field(default_factory=dict[int, float])


def solve(
    problem: Problem, pruned: Pruned, proven: Fixing, known: float, limit: int, end: float
) -> Solution | None:
    """An optimal solution; ``None`` if it takes more than `limit` frontiers, or time after `end`.

    The limit is that of each order.  `known` is the cost of some solution.
    """
    for order in orders_of(problem, pruned):
        try:
            return _Search(problem, pruned, order, proven).best(known, limit, end)
        except _TooWideError:
            continue
        except _TangledError:
            break
    return None


class _Search:
    """Sets of classes are bits, users before their inputs; the bits of a component are adjacent."""

    def __init__(
        self, problem: Problem, pruned: Pruned, order: Sequence[int], proven: Fixing
    ) -> None:
        self._problem = problem
        self._proven = proven
        self._pruned = pruned
        self._order = order
        self._bit = {c: 1 << place for place, c in enumerate(self._order)}
        self._group = [pruned.component[c] for c in self._order]
        members: dict[int, int] = {}
        for c in self._order:
            component = pruned.component[c]
            members[component] = members.get(component, 0) | self._bit[c]
        self._members = members
        self._least = _least(problem, pruned)
        self._steps: dict[int, tuple[_Step, ...]] = {}
        self._enumerated = 0

    def best(self, known: float, limit: int, end: float) -> Solution:
        """An optimal solution, which costs at most `known`."""
        start = sum(self._bit[root] for root in self._problem.roots)
        arrivals: dict[int, dict[int, _Arrival]] = {g: {} for g in self._members}
        final: dict[int, _Arrival] = {}
        (arrivals[self._next(start)] if start else final)[start] = _Arrival(0.0, 0.0, 0, ())
        most, expanded = known * (1 + _SLACK), 0
        most_extra = most - self._proven.bound
        for decided, (group, members) in enumerate(self._members.items()):
            reached = arrivals[group]
            if len(reached) > _WIDEST * limit:
                raise _TooWideError
            if _is_behind(expanded, limit, decided / len(self._members)):
                raise _TooWideError
            for frontier in _undominated(reached):
                expanded += 1
                if expanded > limit or time.thread_time() > end:
                    raise _TooWideError
                for step in self._transitions(frontier & members):
                    cost = reached[frontier].cost + step.cost
                    extra = reached[frontier].extra + step.extra
                    left = (frontier & ~members) | step.wanted
                    if extra > most_extra or cost + self._lower_bound(left) > most:
                        continue
                    place = arrivals[self._next(left)] if left else final
                    if left not in place or cost < place[left].cost:
                        place[left] = _Arrival(cost, extra, frontier, step.chosen)
        solution: dict[int, int] = {}
        at, arrival = 0, final[0]
        while arrival.chosen:
            for number in arrival.chosen:
                solution[self._problem.candidates[number].output] = number
            at = arrival.before
            arrival = arrivals[self._next(at)][at]
        return solution

    def _first(self, classes: int) -> int:
        return (classes & -classes).bit_length() - 1

    def _next(self, frontier: int) -> int:
        """The component to decide next."""
        return self._group[self._first(frontier)]

    def _lower_bound(self, frontier: int) -> float:
        """A lower bound of the cost of the first class of a frontier."""
        return self._least[self._order[self._first(frontier)]] if frontier else 0.0

    def _transitions(self, wanted: int) -> tuple[_Step, ...]:
        """The undominated transitions for the classes `wanted`, all of one component."""
        if wanted not in self._steps:
            self._enumerated = 0
            every = sorted(self._selections(wanted, {}), key=lambda step: step.cost)
            kept: list[_Step] = []
            for step in every:
                if not any(better.wanted & ~step.wanted == 0 for better in kept):
                    kept.append(step)
            self._steps[wanted] = tuple(kept)
        return self._steps[wanted]

    def _selections(self, wanted: int, chosen: dict[int, int]) -> Iterator[_Step]:
        """All acyclic selections for `wanted` that extend `chosen`."""
        missing = wanted & ~sum(self._bit[c] for c in chosen)
        if not missing:
            if self._acyclic(chosen):
                yield self._step(chosen)
            return
        c = self._order[self._first(missing)]
        members = self._members[self._pruned.component[c]]
        for number in self._pruned.options[c]:
            self._enumerated += 1
            if self._enumerated > MAX_PER_CYCLE:
                raise _TangledError
            inputs = sum(self._bit[d] for d in self._problem.candidates[number].inputs)
            yield from self._selections(wanted | (inputs & members), {**chosen, c: number})

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
        extra = sum(self._proven.extra.get(number, 0.0) for number in chosen.values())
        return _Step(cost, extra, wanted, tuple(chosen.values()))


def _is_behind(expanded: int, limit: int, decided: float) -> bool:
    """Whether a search that decided this share of the classes will hardly end within `limit`."""
    first, last = (share * limit for share in _EARLY)
    return first < expanded < last and decided < _PACE * expanded / limit


def _undominated(reached: Mapping[int, _Arrival]) -> list[int]:
    """The frontiers, cheapest first, without supersets of cheaper ones."""
    ranked = sorted(reached, key=lambda frontier: reached[frontier].cost)
    kept: list[int] = []
    for frontier in ranked:
        others = ~frontier
        for better in kept[:_COMPARED]:
            if not better & others:
                break
        else:
            kept.append(frontier)
    return kept


def _least(problem: Problem, pruned: Pruned) -> dict[int, float]:
    """For each class a lower bound of the cost of a derivation: its most expensive chain."""
    least: dict[int, float] = {}
    for c, numbers in pruned.options.items():
        costs: list[float] = []
        for number in numbers:
            candidate = problem.candidates[number]
            below = max([least.get(d, 0.0) for d in candidate.inputs], default=0.0)
            costs.append(candidate.cost + below)
        least[c] = min(costs)
    return least
