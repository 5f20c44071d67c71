"""Strongly connected components (Tarjan), without recursion."""

from collections.abc import Iterable, Mapping


def components(successors: Mapping[int, Iterable[int]]) -> list[list[int]]:
    """The strongly connected components, successors first; within one, in postorder.

    Every successor is a key.
    """
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    component_of: dict[int, int] = {}
    groups: list[list[int]] = []
    pending: list[int] = []
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


def _take_since(pending: list[int], index: Mapping[int, int], first: int) -> list[int]:
    """Remove and return the vertices at the end of `pending` visited since number `first`."""
    count = 0
    while count < len(pending) and index[pending[-1 - count]] >= first:
        count += 1
    members = pending[len(pending) - count :]
    del pending[len(pending) - count :]
    return members
