"""The selection problem as plain tables, and its solutions; independent of tensors."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to produce the class `output` from `inputs`, at ``cost >= 0``, paid once.

    A multi-output candidate is a class of its own; each of its outputs has a candidate of cost 0
    that needs this class.
    """

    output: int
    inputs: frozenset[int]
    cost: float


@dataclass(frozen=True, slots=True)
class Problem:
    """Produce all `roots` at the least total cost.

    A solution takes at most one candidate per class, one for each root and for each input of a
    taken candidate, and has no cycle.
    """

    candidates: tuple[Candidate, ...]
    roots: tuple[int, ...]


Solution: TypeAlias = Mapping[int, int]
"""The candidate of each class; it may have classes that the roots do not need."""


OPTIMAL = "optimal"
"""The status of a result that is proven to be the best."""


@dataclass(frozen=True, slots=True)
class Selection:
    """A solution, as numbers of candidates in topological order.

    No solution costs less than `bound`;  `bound_source` names the method that proves it.  `status`
    is ``optimal``, ``gap 1.3 %, time limit``, ``gap 0.4 %, close enough`` or ``greedy:  `` and the
    reason.
    """

    chosen: tuple[int, ...]
    cost: float
    bound: float
    status: str
    bound_source: str
    seconds: float

    @property
    def gap(self) -> float:
        """The share of the cost that a better solution could at most save."""
        return (self.cost - self.bound) / self.cost if self.cost > 0 else 0.0


def derivation(problem: Problem, numbers: Iterable[int] | None = None) -> dict[int, int]:
    """A candidate for each class that has an acyclic derivation, inputs first.

    `numbers` restricts the candidates.  Linear in their size.
    """
    candidates = problem.candidates
    waiting: dict[int, int] = {}
    users: dict[int, list[int]] = {}
    for number in range(len(candidates)) if numbers is None else numbers:
        waiting[number] = len(candidates[number].inputs)
        for needed in candidates[number].inputs:
            users.setdefault(needed, []).append(number)
    derived: dict[int, int] = {}
    ready = [number for number, count in waiting.items() if count == 0]
    while ready:
        number = ready.pop()
        output = candidates[number].output
        if output in derived:
            continue
        derived[output] = number
        for user in users.get(output, ()):
            waiting[user] -= 1
            if waiting[user] == 0:
                ready.append(user)
    return derived


def computable(problem: Problem) -> frozenset[int]:
    """The classes that have an acyclic derivation.  Linear in the size of the problem."""
    return frozenset(derivation(problem))


def in_order(problem: Problem, solution: Solution) -> tuple[int, ...] | None:
    """What the roots need of `solution`, inputs first; ``None`` if it is cyclic or incomplete."""
    order: list[int] = []
    done: set[int] = set()
    entered: set[int] = set()
    stack = list(reversed(problem.roots))
    while stack:
        top = stack[-1]
        number = solution.get(top)
        if number is None:
            return None
        if top in done:
            stack.pop()
            continue
        missing = [c for c in problem.candidates[number].inputs if c not in done]
        if not missing:
            done.add(top)
            order.append(number)
            stack.pop()
        elif top in entered:
            return None
        else:
            entered.add(top)
            stack.extend(sorted(missing, reverse=True))
    return tuple(order)


def cost_in_order(problem: Problem, order: tuple[int, ...]) -> float:
    """The total cost of the candidates numbered in `order`."""
    return math.fsum(problem.candidates[number].cost for number in order)
