"""Boxes in layers, each below what it reads, with few crossings (Sugiyama, Tagawa, Toda, 1981).

igraph orders the boxes of each layer.  It takes all of them for points, so that the places within a
layer are found here: those closest to the neighbours among all that keep boxes apart.  Layers are
found here, too: igraph 1.0 reads beyond its memory where an edge passes a layer.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from statistics import fmean
from typing import TypeAlias

try:
    from igraph import Graph
except ModuleNotFoundError:
    needed = "pictures need the package igraph: pip install 'relax-egraph[svg]'"
    raise ImportError(needed) from None

Size: TypeAlias = tuple[float, float]
Point: TypeAlias = tuple[float, float]
Edge: TypeAlias = tuple[int, int]
"""A box, and the box that reads it."""

GAP, BETWEEN = 24.0, 44.0
"""Pixels between the boxes of a layer, and between layers."""

_SWEEPS = 8


@dataclass(frozen=True, slots=True)
class Places:
    """The upper left corner of each box, the size of the whole, and where long edges bend."""

    corners: tuple[Point, ...]
    size: Size
    bends: dict[Edge, tuple[Point, ...]]


def places(sizes: Sequence[Size], reads: Sequence[Iterable[int]]) -> Places:
    """Places of boxes of `sizes`; box k is below the boxes ``reads[k]``, unless in a cycle."""
    layered = _Layered.of(sizes, reads)
    centres = layered.centres(layered.ordered())
    heights = [max(layered.sizes[v][1] for v in layer) for layer in layered.layers]
    tops = [GAP, *accumulate((h + BETWEEN for h in heights), initial=GAP)][1:]
    left = min((centres[v] - layered.sizes[v][0] / 2 for v in range(len(centres))), default=0.0)
    shift = GAP - left
    corners = [
        (centres[v] - layered.sizes[v][0] / 2 + shift, tops[layered.rank[v]])
        for v in range(len(layered.sizes))
    ]
    bends = {
        edge: tuple(
            point
            for v in chain
            for x, y in [corners[v]]
            for point in ((x, y), (x, y + heights[layered.rank[v]]))
        )
        for edge, chain in layered.chains.items()
    }
    boxes = corners[: len(sizes)]
    right = max((x + w for (x, _), (w, _) in zip(corners, layered.sizes, strict=True)), default=0.0)
    return Places(tuple(boxes), (right + GAP, tops[-1] - BETWEEN + GAP), bends)


@dataclass(slots=True)
class _Layered:
    """Vertices in layers: the boxes, then a point for each layer that a long edge passes."""

    sizes: list[Size]
    rank: list[int]
    edges: list[Edge] = field(default_factory=list[Edge])
    chains: dict[Edge, list[int]] = field(default_factory=dict[Edge, list[int]])

    @classmethod
    def of(cls, sizes: Sequence[Size], reads: Sequence[Iterable[int]]) -> "_Layered":
        above = [[k for k in dict.fromkeys(each) if k != box] for box, each in enumerate(reads)]
        rank = _ranks(above)
        layered = cls(list(sizes), rank)
        for reader, each in enumerate(above):
            for box in each:
                if rank[box] < rank[reader]:
                    layered._join(box, reader)
        return layered

    def _join(self, box: int, reader: int) -> None:
        chain: list[int] = []
        for rank in range(self.rank[box] + 1, self.rank[reader]):
            chain.append(len(self.sizes))
            self.sizes.append((0.0, 0.0))
            self.rank.append(rank)
        self.edges += pairwise((box, *chain, reader))
        self.chains[box, reader] = chain

    @property
    def layers(self) -> list[list[int]]:
        """The vertices of each layer."""
        layers: list[list[int]] = [[] for _ in range(1 + max(self.rank, default=-1))]
        for v, rank in enumerate(self.rank):
            layers[rank].append(v)
        return layers

    def ordered(self) -> list[list[int]]:
        """The vertices of each layer from left to right."""
        if not self.edges:
            return self.layers
        # every edge leads from a layer to the next: other edges may end the process
        graph = Graph(len(self.sizes), self.edges, directed=True)
        at: Sequence[Sequence[float]] = graph.layout_sugiyama(layers=self.rank).coords
        return [sorted(layer, key=lambda v: (at[v][0], v)) for layer in self.layers]

    def centres(self, layers: Sequence[Sequence[int]]) -> list[float]:
        """The centre of each vertex: close to the mean of its neighbours, in the given order."""
        near: list[list[int]] = [[] for _ in self.sizes]
        for a, b in self.edges:
            near[a].append(b)
            near[b].append(a)
        centres = [0.0] * len(self.sizes)
        for layer in layers:
            self._settle(layer, [0.0] * len(layer), centres)
        for sweep in range(_SWEEPS):
            for layer in layers if sweep % 2 == 0 else reversed(layers):
                wanted = [
                    fmean(centres[k] for k in near[v]) if near[v] else centres[v] for v in layer
                ]
                self._settle(layer, wanted, centres)
        return centres

    def _settle(self, layer: Sequence[int], wanted: Sequence[float], centres: list[float]) -> None:
        widths = [self.sizes[v][0] for v in layer]
        for v, centre in zip(layer, apart(wanted, widths), strict=True):
            centres[v] = centre


def _ranks(above: Sequence[Sequence[int]]) -> list[int]:
    """The layer of each box: below what it reads; with at most one read, beside a user.

    An edge that closes a cycle counts for nothing.
    """
    order = _reading_order(above)
    place = {box: number for number, box in enumerate(order)}
    reads = [[k for k in each if place[k] < place[box]] for box, each in enumerate(above)]
    ranks = [0] * len(above)
    users: list[list[int]] = [[] for _ in above]
    for box in order:
        ranks[box] = 1 + max((ranks[k] for k in reads[box]), default=-1)
        for k in reads[box]:
            users[k].append(box)
    for box in reversed(order):
        if users[box] and len(reads[box]) <= 1:
            ranks[box] = min(ranks[user] for user in users[box]) - 1
    return ranks


def _reading_order(above: Sequence[Sequence[int]]) -> list[int]:
    """The boxes, each after those that it reads, but for one of each cycle."""
    order: list[int] = []
    entered: set[int] = set()
    for start in range(len(above)):
        stack = [] if start in entered else [start]
        while stack:
            box = stack[-1]
            entered.add(box)
            todo = next((k for k in above[box] if k not in entered), None)
            if todo is None:
                order.append(stack.pop())
            else:
                stack.append(todo)
    return order


def apart(wanted: Sequence[float], widths: Sequence[float]) -> list[float]:
    """The centres of boxes in a row that are closest to `wanted`, with gaps between the boxes.

    The sum of squared distances is least: it is a regression to a sequence that does not fall
    (pool adjacent violators).
    """
    steps = [GAP + (a + b) / 2 for a, b in pairwise(widths)]
    offsets = list(accumulate(steps, initial=0.0))
    pools: list[tuple[float, int]] = []
    for want, offset in zip(wanted, offsets, strict=False):
        mean, count = want - offset, 1
        while pools and pools[-1][0] > mean:
            other, others = pools.pop()
            mean = (mean * count + other * others) / (count + others)
            count += others
        pools.append((mean, count))
    level = [mean for mean, count in pools for _ in range(count)]
    return [place + offset for place, offset in zip(level, offsets, strict=False)]
