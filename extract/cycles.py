"""Cycle constraints, added lazily where a solution without them violates one.

Around a cycle of classes, an acyclic solution takes at most as many edges as it produces classes,
not counting any one of them.  A constraint violated by a fractional solution is separated by
shortest paths, where the length of an edge is the share of its class that other edges produce.
"""

import heapq
from collections.abc import Mapping

from relax_egraph.extract.problem import Problem
from relax_egraph.extract.prune import Pruned
from relax_egraph.extract.rows import Row

_VIOLATION = 1e-4
"""The least violation for which a constraint is added."""


def violated_cycles(
    problem: Problem, pruned: Pruned, taken: Mapping[int, float]
) -> list[tuple[int, ...]]:
    """Cycles whose constraints the fractional solution `taken` violates; at most one per class.

    Each begins with the class that its constraint does not count.
    """
    edges: dict[int, dict[int, float]] = {}
    produced: dict[int, float] = {}
    for c, options in pruned.options.items():
        if pruned.size[pruned.component[c]] == 1:
            continue
        total = sum(taken[n] for n in options)
        if total <= _VIOLATION:
            continue
        used: dict[int, float] = {}
        for number in options:
            if taken[number] > 0:
                for needed in problem.candidates[number].inputs:
                    if pruned.in_cycle(c, needed):
                        used[needed] = used.get(needed, 0.0) + taken[number]
        produced[c] = total
        edges[c] = {d: max(0.0, total - share) for d, share in used.items()}
    cycles: dict[frozenset[int], tuple[int, ...]] = {}
    for c, total in produced.items():
        cycle = _shortest_cycle(edges, c, total - _VIOLATION)
        if cycle:
            cycles.setdefault(frozenset(cycle), cycle)
    return list(cycles.values())


def _shortest_cycle(
    edges: Mapping[int, Mapping[int, float]], start: int, limit: float
) -> tuple[int, ...]:
    """The shortest cycle through `start`, if it is shorter than `limit` (Dijkstra)."""
    before: dict[int, int] = {}
    heap = [(length, d, start) for d, length in edges[start].items() if length < limit]
    heapq.heapify(heap)
    while heap:
        length, c, origin = heapq.heappop(heap)
        if c in before:
            continue
        before[c] = origin
        if c == start:
            return _path_back(before, start)
        for d, further in edges.get(c, {}).items():
            if d not in before and length + further < limit:
                heapq.heappush(heap, (length + further, d, c))
    return ()


def _path_back(before: Mapping[int, int], start: int) -> tuple[int, ...]:
    cycle = [before[start]]
    while cycle[-1] != start:
        cycle.append(before[cycle[-1]])
    return tuple(reversed(cycle))


def row_around(
    problem: Problem, pruned: Pruned, cycle: tuple[int, ...], column: Mapping[int, int]
) -> Row:
    """``Σ (edges taken) - Σ (classes produced, except the first) <= 0``."""
    entries: dict[int, float] = {}
    for c, following in zip(cycle, (*cycle[1:], cycle[0]), strict=True):
        for number in pruned.options[c]:
            value = float(following in problem.candidates[number].inputs) - float(c != cycle[0])
            if value:
                entries[column[number]] = value
    return Row(entries, float("-inf"), 0.0)
