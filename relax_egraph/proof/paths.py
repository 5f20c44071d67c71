"""The way from one term to another by few rules, over what is known to be equal.

Dijkstra's algorithm (1959), over rules and congruences.  A congruence is as long as the ways
between its parts by what was known before it: each has one length, which is found once.  Of several
in a row only those that lead to the goal are weighed as one, so a way may be a little longer than
it need be; to weigh every pair of terms that are congruent takes minutes where many are.
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
    """A row of the relation or function `name`, which `rule` deduced at a time.

    Its premises were that the two of each of `given` are equal, and what was `deduced` before.
    """

    rule: str
    name: str
    row: tuple[Any, ...]
    time: float
    given: Pairs = ()
    deduced: "tuple[Deduced, ...]" = ()


_BACKWARDS = 1.1
"""The length of a rule that is applied backwards; of one that is not it is 1."""


@dataclass(frozen=True, slots=True)
class Edge:
    """`left` and `right` are equal by `rule`, or if that is empty by congruence.

    Premises of the rule were that the two of each of `given` are equal, and what was `deduced`.
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
        """The same from `right` to `left`."""
        return replace(self, left=self.right, right=self.left, backwards=not self.backwards)

    @property
    def parts(self) -> list[tuple[Term, Term]]:
        """The parts in which the two differ, each pair once."""
        pairs = zip(self.left.operands, self.right.operands, strict=True)
        return [pair for pair in dict.fromkeys(pairs) if pair[0] is not pair[1]]


class Paths:
    """Ways over `edges`, by the term at which they begin; these may become more in the meantime."""

    def __init__(self, edges: Mapping[Term, Sequence[Edge]]) -> None:
        self._edges = edges
        self._lengths: dict[tuple[Term, Term, float], float] = {}

    def shortest(self, left: Term, right: Term, before: float) -> list[Edge] | None:
        """The edges of times before `before` that lead from `left` to `right`, if some do."""
        came = self._search(left, right, before)[1]
        return _walked(right, came) if right in came else None

    def _search(
        self, left: Term, right: Term, before: float
    ) -> tuple[float, Mapping[Term, Edge | None]]:
        """How far it is, and the edge by which each term was reached."""
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
        """The congruence from `term` to `right`, where several lead there."""
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
        """How many rules it takes; of a congruence, what it takes to make its parts equal."""
        if edge.rule:
            return _BACKWARDS if edge.backwards else 1.0
        key = (edge.left, edge.right, edge.time)
        if key not in self._lengths:
            ways = (self._search(*pair, edge.time) for pair in edge.parts)
            self._lengths[key] = sum(length for length, _ in ways)
        return self._lengths[key]


def _walked(right: Term, came: Mapping[Term, Edge | None]) -> list[Edge]:
    path: list[Edge] = []
    while (edge := came[right]) is not None:
        path.append(edge)
        right = edge.left
    return path[::-1]
