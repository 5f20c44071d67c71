"""Separation: barriers that a fractional solution violates.

To find the weakest barrier is hard, since a candidate needs all of its inputs.  So each candidate
stands for one edge, to the input that the solution derives least; then a weakest barrier is a
minimum cut.  Whatever is missed, each barrier that is found is violated, and a solution of whole
numbers that is cyclic or incomplete always violates one of these.
"""

from collections import deque
from collections.abc import Iterator, Mapping

from relax_egraph.extract.barriers import Barrier
from relax_egraph.extract.problem import Problem, derivation
from relax_egraph.extract.prune import Pruned
from relax_egraph.extract.rows import VIOLATION

_TINY = 1e-9
"""A share of a candidate that is as good as none."""

_PASSES = 3
"""How often the shares to which classes are derived are improved."""

_SOURCE = -1
"""The vertex that candidates without inputs lead to: no class has this number."""


def violated_barriers(
    problem: Problem, pruned: Pruned, taken: Mapping[int, float]
) -> Iterator[Barrier]:
    """Barriers that the fractional solution `taken` violates; at most one for each class."""
    support = {
        c: {n: taken[n] for n in options if taken[n] > _TINY}
        for c, options in pruned.options.items()
    }
    derived = _derived_shares(problem, support)
    edges: dict[int, dict[int, float]] = {}
    for c, shares in support.items():
        edges[c] = {}
        for number, share in shares.items():
            inputs = problem.candidates[number].inputs
            hardest = min(inputs, key=lambda d: (derived.get(d, 0.0), d), default=_SOURCE)
            edges[c][hardest] = edges[c].get(hardest, 0.0) + share
    for c, shares in support.items():
        demanded = sum(shares.values()) - VIOLATION
        if demanded > 0 and (classes := _cut_off(edges, c, demanded)):
            yield Barrier(c, classes)


def _derived_shares(
    problem: Problem, support: Mapping[int, Mapping[int, float]]
) -> dict[int, float]:
    """An estimate of the share to which each class is derived; it is not 0 where it can be."""
    derived: dict[int, float] = {}
    order = derivation(problem, [n for shares in support.values() for n in shares])
    for _ in range(_PASSES):
        for c in order:
            derived[c] = sum(
                [
                    min([share, *[derived.get(d, 0.0) for d in problem.candidates[n].inputs]])
                    for n, share in support[c].items()
                ]
            )
    return derived


def _cut_off(
    edges: Mapping[int, Mapping[int, float]], start: int, demanded: float
) -> frozenset[int]:
    """The classes on the side of `start` of a cut below `demanded`; empty if there is none.

    The maximum flow is found along shortest paths (Edmonds and Karp, 1972).
    """
    flows: dict[int, dict[int, float]] = {}
    total = 0.0
    while total < demanded:
        before = _paths(edges, flows, start)
        if _SOURCE not in before:
            return frozenset(before)
        path = [_SOURCE]
        while path[-1] != start:
            path.append(before[path[-1]])
        steps = [*zip(path[1:], path, strict=False)]
        amount = min(_left(edges, flows, c, d) for c, d in steps)
        for c, d in steps:
            flows.setdefault(c, {})[d] = flows.get(c, {}).get(d, 0.0) + amount
            flows.setdefault(d, {})[c] = flows.get(d, {}).get(c, 0.0) - amount
        total += amount
    return frozenset()


def _paths(
    edges: Mapping[int, Mapping[int, float]], flows: Mapping[int, Mapping[int, float]], start: int
) -> dict[int, int]:
    """The vertices that more flow can reach from `start`, each with the one before it."""
    before = {start: start}
    todo = deque((start,))
    while todo and _SOURCE not in before:
        c = todo.popleft()
        for d in (*edges.get(c, ()), *flows.get(c, ())):
            if d not in before and _left(edges, flows, c, d) > _TINY:
                before[d] = c
                todo.append(d)
    return before


def _left(
    edges: Mapping[int, Mapping[int, float]],
    flows: Mapping[int, Mapping[int, float]],
    c: int,
    d: int,
) -> float:
    """How much more can flow from `c` to `d`."""
    return edges.get(c, {}).get(d, 0.0) - flows.get(c, {}).get(d, 0.0)
