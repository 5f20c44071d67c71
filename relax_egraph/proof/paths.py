"""Short paths between equal terms, over rules and congruences, by Dijkstra's algorithm (1959).

The length of a congruence is the sum of the lengths of the paths between its parts, over earlier
edges; it is computed once.  Consecutive congruences count as one only if they lead to the goal, so
a path may be slightly longer than necessary: a weight for every pair of congruent terms would take
minutes for large classes.
"""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from math import inf
from typing import Any, TypeAlias

from relax_egraph.proof.term import Term

Pairs: TypeAlias = tuple[tuple[Term, Term], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Deduced:
    """A row of the relation or function `name`, which `rule` deduced at `time`.

    The premises of the rule are the equations `given`, and the rows `deduced`.
    """

    rule: str
    name: str
    row: tuple[Any, ...]
    time: float
    given: Pairs = ()
    deduced: "tuple[Deduced, ...]" = ()


_BACKWARDS = 1.1
"""The length of a rule that is applied backwards; a rule applied forwards has length 1."""


@dataclass(frozen=True, slots=True)
class Edge:
    """An equation of `left` and `right`, by `rule`, or by congruence if `rule` is empty.

    The premises of the rule are the equations `given`, and the rows `deduced`.
    """

    left: Term
    right: Term
    rule: str
    time: float
    given: Pairs = ()
    deduced: tuple[Deduced, ...] = ()
    backwards: bool = False

    @property
    def reversed(self) -> "Edge":
        """The edge from `right` to `left`."""
        return replace(self, left=self.right, right=self.left, backwards=not self.backwards)

    @property
    def parts(self) -> list[tuple[Term, Term]]:
        """The distinct pairs of operands in which the two terms differ."""
        pairs = zip(self.left.operands, self.right.operands, strict=True)
        return [pair for pair in dict.fromkeys(pairs) if pair[0] is not pair[1]]


class Paths:
    """Paths over `edges`, by their first term; edges may be added between searches."""

    def __init__(self, edges: Mapping[Term, Sequence[Edge]]) -> None:
        self._edges = edges
        self._lengths: dict[tuple[Term, Term, float], float] = {}

    def shortest(self, left: Term, right: Term, before: float) -> list[Edge] | None:
        """A path from `left` to `right` over edges of times before `before`, if there is one."""
        came = self._search(left, right, before)[1]
        return _walked(right, came) if right in came else None

    def _search(
        self, left: Term, right: Term, before: float
    ) -> tuple[float, Mapping[Term, Edge | None]]:
        """The length of the path, and the last edge on the path to each visited term."""
        came, order, best = dict[Term, Edge | None](), count(), {left: 0.0}
        queue: list[tuple[float, int, Term, Edge | None]] = [(0.0, next(order), left, None)]
        while queue:
            length, _, term, edge = heapq.heappop(queue)
            if term in came:
                continue
            came[term] = edge
            if term is right:
                return length, came
            for onward in (*self._edges[term], *self._across(term, right, before)):
                then = onward.right
                if onward.time < before and then not in came and length < best.get(then, inf):
                    total = length + self._length(onward)
                    if total < best.get(then, inf):
                        best[then] = total
                        heapq.heappush(queue, (total, next(order), then, onward))
        return inf, came

    def _across(self, term: Term, right: Term, before: float) -> Iterator[Edge]:
        """The composition of several congruences from `term` to `right`, if there are such."""
        seen, todo = {term}, [(term, 0.0)] if term.op == right.op else []
        while todo:
            inner, time = todo.pop()
            for edge in self._edges[inner]:
                if not edge.rule and edge.time < before and edge.right not in seen:
                    last = max(time, edge.time)
                    if edge.right is right and inner is not term:
                        yield Edge(term, right, "", last)
                    seen.add(edge.right)
                    todo.append((edge.right, last))

    def _length(self, edge: Edge) -> float:
        """The number of rules; for a congruence, the total length of the paths of its parts."""
        if edge.rule:
            return _BACKWARDS if edge.backwards else 1.0
        key = (edge.left, edge.right, edge.time)
        if key not in self._lengths:
            searches = (self._search(*pair, edge.time) for pair in edge.parts)
            self._lengths[key] = sum(length for length, _ in searches)
        return self._lengths[key]


def _walked(right: Term, came: Mapping[Term, Edge | None]) -> list[Edge]:
    path: list[Edge] = []
    while (edge := came[right]) is not None:
        path.append(edge)
        right = edge.left
    return path[::-1]
