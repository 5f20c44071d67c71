"""Rows against cycles, added one by one as solutions of a program without them go around some.

Around a cycle of classes, count the edges that are taken; without a cycle, that is at most the
number of its classes that are made, all but any one of them.  A fractional solution that breaks
such a row is found by shortest paths, where an edge is as long as what is made of its class
by other edges.
"""

import heapq
from collections.abc import Mapping

from relax_egraph.extract.problem import Problem
from relax_egraph.extract.prune import Pruned
from relax_egraph.extract.rows import Row

_BROKEN = 1e-4
"""By how much a row must be broken to be added."""


def broken_cycles(
    problem: Problem, pruned: Pruned, taken: Mapping[int, float]
) -> list[tuple[int, ...]]:
    """Cycles whose rows `taken`, a share of each candidate, breaks; at most one from each class.

    Each begins with the class that its row leaves out.
    """
    edges: dict[int, dict[int, float]] = {}
    made: dict[int, float] = {}
    for c, options in pruned.options.items():
        if pruned.size[pruned.component[c]] == 1:
            continue
        total = sum(taken[n] for n in options)
        if total <= _BROKEN:
            continue
        used: dict[int, float] = {}
        for number in options:
            if taken[number] > 0:
                for needed in problem.candidates[number].inputs:
                    if pruned.in_cycle(c, needed):
                        used[needed] = used.get(needed, 0.0) + taken[number]
        made[c] = total
        edges[c] = {d: max(0.0, total - share) for d, share in used.items()}
    found: dict[frozenset[int], tuple[int, ...]] = {}
    for c, total in made.items():
        cycle = _shortest_cycle(edges, c, total - _BROKEN)
        if cycle:
            found.setdefault(frozenset(cycle), cycle)
    return list(found.values())


def _shortest_cycle(
    edges: Mapping[int, Mapping[int, float]], start: int, limit: float
) -> tuple[int, ...]:
    """The shortest way from `start` back to it, if it is shorter than `limit` (Dijkstra)."""
    before: dict[int, int] = {}
    heap = [(length, d, start) for d, length in edges[start].items() if length < limit]
    heapq.heapify(heap)
    while heap:
        length, c, origin = heapq.heappop(heap)
        if c in before:
            continue
        before[c] = origin
        if c == start:
            return _way_back(before, start)
        for d, further in edges.get(c, {}).items():
            if d not in before and length + further < limit:
                heapq.heappush(heap, (length + further, d, c))
    return ()


def _way_back(before: Mapping[int, int], start: int) -> tuple[int, ...]:
    cycle = [before[start]]
    while cycle[-1] != start:
        cycle.append(before[cycle[-1]])
    return tuple(reversed(cycle))


def row_around(
    problem: Problem, pruned: Pruned, cycle: tuple[int, ...], column: Mapping[int, int]
) -> Row:
    """``Σ (edges taken) - Σ (classes made, but the first) <= 0``."""
    entries: dict[int, float] = {}
    for c, following in zip(cycle, (*cycle[1:], cycle[0]), strict=True):
        for number in pruned.options[c]:
            value = float(following in problem.candidates[number].inputs) - float(c != cycle[0])
            if value:
                entries[column[number]] = value
    return Row(entries, float("-inf"), 0.0)
