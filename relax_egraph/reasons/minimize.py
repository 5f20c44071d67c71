"""Delta debugging: a minimal subset of items that still fails.

Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input", IEEE Transactions on
Software Engineering 28 (2002), with complements only: if several items are needed together, a small
part alone seldom fails; if one item is needed, removing the others isolates it as fast (Hodován and
Kiss, "Practical improvements to the minimizing delta debugging algorithm", 2016).
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Literal, TypeAlias, TypeVar

T = TypeVar("T", bound=Hashable)

Outcome: TypeAlias = Literal["fails", "passes", "unresolved"]
"""The outcome of a try: it fails in the same way as all items, passes, or fails in another way."""


def minimal(
    items: Sequence[T],
    outcome: Callable[[tuple[T, ...]], Outcome],
    expect: Callable[[Iterable[tuple[T, ...]]], object] = lambda _: None,
) -> tuple[T, ...]:
    """A subset of `items`, in their order, that fails, and passes without any one of its items.

    `items` are distinct, and fail together.  The parts to remove are halved again and again.  If
    more items never cure a failure, `k` of `n` items take at most ``2 k (log2(n / k) + 2)`` tries,
    otherwise at most ``n (n + 5) / 2``.  No subset is tried twice within one call.

    Before a try, `expect` is called with what is tried in this round if no part can be removed: the
    subset of the try and the next ones.
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
            starts = range(start, len(kept), size)
            without = (kept[:k] + kept[k + size :] for k in starts)
            expect(part for part in without if part not in tried)
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
