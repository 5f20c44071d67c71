"""Decomposition of a problem into independent subproblems.

A class that every solution contains is free for its users, unless user and class lie on a common
cycle.  Without the edges to such classes the graph falls into connected components; the optimal
solutions of the components together are an optimal solution of the whole.
"""

from dataclasses import dataclass

from relax_egraph.extract.problem import Candidate, Problem
from relax_egraph.extract.prune import Pruned


@dataclass(frozen=True, slots=True)
class Subproblem:
    """A component; `numbers` maps its candidates to those of the whole problem."""

    problem: Problem
    numbers: tuple[int, ...]


def subproblems_of(problem: Problem, pruned: Pruned) -> tuple[Subproblem, ...]:
    """The components of the pruned `problem`, inputs first where there is no cycle."""
    parent: dict[int, int] = {c: c for c in pruned.options}
    for c, numbers in pruned.options.items():
        for number in numbers:
            for needed in _open_inputs(problem.candidates[number], pruned):
                parent[_find(parent, needed)] = _find(parent, c)
    members: dict[int, list[int]] = {}
    for c in pruned.options:
        members.setdefault(_find(parent, c), []).append(c)
    return tuple(_subproblem(problem, pruned, classes) for classes in members.values())


def _open_inputs(candidate: Candidate, pruned: Pruned) -> frozenset[int]:
    """The inputs of `candidate` that not every solution contains."""
    return frozenset(
        d
        for d in candidate.inputs
        if d not in pruned.needed or pruned.in_cycle(candidate.output, d)
    )


def _subproblem(problem: Problem, pruned: Pruned, classes: list[int]) -> Subproblem:
    numbers = tuple(n for c in classes for n in pruned.options[c])
    candidates = (problem.candidates[n] for n in numbers)
    reduced = tuple(Candidate(k.output, _open_inputs(k, pruned), k.cost) for k in candidates)
    return Subproblem(Problem(reduced, tuple(c for c in classes if c in pruned.needed)), numbers)


def _find(parent: dict[int, int], c: int) -> int:
    """The representative of the component of `c` (union-find with path halving)."""
    while parent[c] != c:
        parent[c] = parent[parent[c]]
        c = parent[c]
    return c
