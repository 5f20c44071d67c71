"""Delta debugging: a smallest part of what is given that still fails.

Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input", IEEE Transactions on
Software Engineering 28 (2002), with complements only: a part by itself is seldom enough where
several items are needed together, and where one is, removing the rest finds it as soon (Hodován and
Kiss, "Practical improvements to the minimizing delta debugging algorithm", 2016).
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Literal, TypeAlias, TypeVar

T = TypeVar("T", bound=Hashable)

Outcome: TypeAlias = Literal["fails", "passes", "unresolved"]
"""Of a try: it fails as the whole does, or not at all, or otherwise, which tells nothing."""


def minimal(items: Sequence[T], outcome: Callable[[tuple[T, ...]], Outcome]) -> tuple[T, ...]:
    """A part of `items`, in their order, that fails, but not without any one of its items.

    `items` are distinct, and fail together.  Parts are halved, then halved again: where more items
    never cure a failure, there are at most ``2 k (log2(n / k) + 2)`` tries for `k` of `n` items,
    and else no more than ``n (n + 5) / 2``.  No part is tried twice, but by other calls.
    """
    tried: dict[tuple[T, ...], bool] = {}

    def fails(part: tuple[T, ...]) -> bool:
        if part not in tried:
            tried[part] = outcome(part) == "fails"
        return tried[part]

    kept, size = tuple(items), len(items)
    while size:
        size = min(size, len(kept))
        before, start = kept, 0
        while start < len(kept):
            rest = kept[:start] + kept[start + size :]
            if fails(rest):
                kept = rest
            else:
                start += size
        if size > 1:
            size = (size + 1) // 2
        elif kept == before:
            break
    return kept
