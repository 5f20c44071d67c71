"""Which computations on constants are done once, at build time."""

_REPEATS = frozenset({"broadcast_to", "full", "repeat", "tile"})
"""Operators whose result is only their operand again and again."""


def is_worth_storing(op: str, size: int | None, before: int, growth_limit: int) -> bool:
    """Whether the result of operator `op` on constants is stored in the place of them.

    It has `size` bytes, if that is known, and they have `before` together.  A larger one is stored
    up to `growth_limit` bytes, but not one that only repeats: a kernel repeats as it reads, for
    nothing.
    """
    if size is None:
        return False
    return size <= (before if op in _REPEATS else max(before, growth_limit))
