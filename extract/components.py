"""Strongly connected components (Tarjan), without recursion."""

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

Vertex = TypeVar("Vertex", bound=Hashable)


def components(successors: Mapping[Vertex, Iterable[Vertex]]) -> list[list[Vertex]]:
    """The strongly connected components, successors first; within one, in postorder.

    Every successor is a key.
    """
    index: dict[Vertex, int] = {}
    low: dict[Vertex, int] = {}
    component_of: dict[Vertex, int] = {}
    groups: list[list[Vertex]] = []
    pending: list[Vertex] = []
    for start in successors:
        if start in index:
            continue
        index[start] = low[start] = len(index)
        path = [(start, iter(successors[start]))]
        while path:
            vertex, rest = path[-1]
            following = next(rest, None)
            if following is None:
                path.pop()
                pending.append(vertex)
                if path:
                    parent = path[-1][0]
                    low[parent] = min(low[parent], low[vertex])
                if low[vertex] == index[vertex]:
                    members = _take_since(pending, index, index[vertex])
                    component_of.update(dict.fromkeys(members, len(groups)))
                    groups.append(members)
            elif following not in index:
                index[following] = low[following] = len(index)
                path.append((following, iter(successors[following])))
            elif following not in component_of:
                low[vertex] = min(low[vertex], index[following])
    return groups


def _take_since(pending: list[Vertex], index: Mapping[Vertex, int], first: int) -> list[Vertex]:
    """Remove and return the vertices at the end of `pending` visited since number `first`."""
    count = 0
    while count < len(pending) and index[pending[-1 - count]] >= first:
        count += 1
    members = pending[len(pending) - count :]
    del pending[len(pending) - count :]
    return members
