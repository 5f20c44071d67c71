"""Reductions over the lanes of several vectors at once, by a merging tree."""

from collections.abc import Callable, Iterator, Sequence

from relax_egraph.lower.emit.instructions import Value
from relax_egraph.lower.emit.vector import shuffle

Combine = Callable[[Value, Value], Value]

_QUARTET = 4
"""Lanes of 128 bits: shuffles within them are the cheapest."""


def across(vectors: Sequence[Value], combine: Combine) -> Value:
    """The reduction of ``vectors[i]`` by `combine` in lane ``i``, for as many vectors as lanes.

    Each round merges neighbours: half of the lanes of a result come from each.
    """
    merged = list(vectors)
    for low, high in _rounds(len(vectors)):
        pairs = zip(merged[::2], merged[1::2], strict=True)
        merged = [combine(shuffle(a, b, low), shuffle(a, b, high)) for a, b in pairs]
    return merged[0]


def _rounds(lanes: int) -> Iterator[tuple[list[int], list[int]]]:
    """The lanes of two vectors to combine, for each round: within quartets first."""
    both, quartets = (0, lanes), range(0, lanes, _QUARTET)
    yield (
        [q + k + s for q in quartets for k in (0, 1) for s in both],
        [q + k + s for q in quartets for k in (2, 3) for s in both],
    )
    yield (
        [q + k + s for q in quartets for s in both for k in (0, 1)],
        [q + k + s for q in quartets for s in both for k in (2, 3)],
    )
    while lanes > _QUARTET:
        even, odd = quartets[::2], quartets[1::2]
        yield (
            [q + k + s for s in both for q in even for k in range(_QUARTET)],
            [q + k + s for s in both for q in odd for k in range(_QUARTET)],
        )
        lanes //= 2
