"""A problem cut into parts that do not touch: each is solved by itself.

A class that every solution makes is there for whoever needs it, at no further cost, unless both
lie on a cycle.  Without those edges the classes fall into parts; making the needed classes of
each part as cheaply as can be makes the roots as cheaply as can be.
"""

from dataclasses import dataclass

from relax_egraph.extract.problem import Candidate, Problem
from relax_egraph.extract.prune import Pruned


@dataclass(frozen=True, slots=True)
class Part:
    """A problem of its own; `numbers` are its candidates' in the whole problem."""

    problem: Problem
    numbers: tuple[int, ...]


def parts_of(problem: Problem, pruned: Pruned) -> tuple[Part, ...]:
    """The parts of what is left of `problem`, inputs first where there is no cycle."""
    leader: dict[int, int] = {c: c for c in pruned.options}
    for c, numbers in pruned.options.items():
        for number in numbers:
            for needed in _wanted(problem.candidates[number], pruned):
                leader[_lead(leader, needed)] = _lead(leader, c)
    members: dict[int, list[int]] = {}
    for c in pruned.options:
        members.setdefault(_lead(leader, c), []).append(c)
    return tuple(_part(problem, pruned, classes) for classes in members.values())


def _wanted(candidate: Candidate, pruned: Pruned) -> frozenset[int]:
    """The inputs of `candidate` that are not there in any case."""
    return frozenset(
        d
        for d in candidate.inputs
        if d not in pruned.needed or pruned.in_cycle(candidate.output, d)
    )


def _part(problem: Problem, pruned: Pruned, classes: list[int]) -> Part:
    numbers = tuple(n for c in classes for n in pruned.options[c])
    candidates = (problem.candidates[n] for n in numbers)
    reduced = tuple(Candidate(k.output, _wanted(k, pruned), k.cost) for k in candidates)
    return Part(Problem(reduced, tuple(c for c in classes if c in pruned.needed)), numbers)


def _lead(leader: dict[int, int], c: int) -> int:
    """The class that stands for all that `c` is joined with."""
    while leader[c] != c:
        leader[c] = leader[leader[c]]
        c = leader[c]
    return c
