"""Sums and maxima over the lanes of several vectors at once, in a tree that merges them."""

from collections.abc import Callable, Sequence

from relax_egraph.lower.emit.value import Value
from relax_egraph.lower.emit.vector import shuffle

Combine = Callable[[Value, Value], Value]


def across(vectors: Sequence[Value], combine: Combine) -> Value:
    """In lane ``i`` all lanes of ``vectors[i]``, combined; there are as many vectors as lanes.

    Each round merges pairs: half of the lanes of the result are of one, half of the other.
    """
    size, found = len(vectors), list(vectors)
    distance = size // 2
    while distance:
        low = [e if not e & distance else size + e - distance for e in range(size)]
        high = [e + distance if not e & distance else size + e for e in range(size)]
        pairs = zip(found[:distance], found[distance:], strict=True)
        found = [combine(shuffle(a, b, low), shuffle(a, b, high)) for a, b in pairs]
        distance //= 2
    return found[0]
