"""The choice problem in plain tables, and what its solution is; nothing here knows of tensors."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to make the class `output`: it needs `inputs`, and costs ``cost >= 0``, once.

    What makes several classes at once is a class of its own, and each of the several has a
    free candidate that needs it.
    """

    output: int
    inputs: frozenset[int]
    cost: float


@dataclass(frozen=True, slots=True)
class Problem:
    """Make all `roots` at the least total cost.

    A solution takes at most one candidate for each class, one for each root and each input of
    what it takes, and has no cycle.
    """

    candidates: tuple[Candidate, ...]
    roots: tuple[int, ...]


Solution: TypeAlias = Mapping[int, int]
"""The candidate that makes each class; classes that the roots do not need may be in it."""


@dataclass(frozen=True, slots=True)
class Selection:
    """A solution, as numbers of candidates in an order in which they can run.

    No solution costs less than `bound`; `bound_source` says who claims it.  `status` is
    ``optimal``, ``gap 1.3 %, time limit`` or ``greedy: `` and why.
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
    """For each class that can be made without a cycle a candidate that does, inputs first.

    Only candidates with these `numbers` are taken, if they are given.  Linear in their size.
    """
    candidates = problem.candidates
    waiting: dict[int, int] = {}
    users: dict[int, list[int]] = {}
    for number in range(len(candidates)) if numbers is None else numbers:
        waiting[number] = len(candidates[number].inputs)
        for needed in candidates[number].inputs:
            users.setdefault(needed, []).append(number)
    made: dict[int, int] = {}
    ready = [number for number, count in waiting.items() if count == 0]
    while ready:
        number = ready.pop()
        output = candidates[number].output
        if output in made:
            continue
        made[output] = number
        for user in users.get(output, ()):
            waiting[user] -= 1
            if waiting[user] == 0:
                ready.append(user)
    return made


def computable(problem: Problem) -> frozenset[int]:
    """The classes that can be made without a cycle.  Linear in the size of the problem."""
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
    """What the candidates numbered in `order` cost together."""
    return math.fsum(problem.candidates[number].cost for number in order)
