"""The computations on constants that are done once, at build time."""

import math

import numpy as np

from relax_egraph.ir.struct_info import TensorStructInfo

GROWTH_LIMIT = 1 << 20
"""The default limit, in bytes, of stored results that are larger than their operands."""

REPEATS = frozenset({"broadcast_to", "full", "repeat", "tile"})
"""Operators that only repeat elements of their operand."""


def is_worth_storing(
    size: int | None, before: int, growth_limit: int, *, is_repeated: bool = False
) -> bool:
    """Whether the result of an operator on constants is stored instead of the constants.

    It has `size` bytes, if that is known; they have `before` bytes together.  A larger result is
    stored up to `growth_limit` bytes, unless it `is_repeated`: a kernel repeats the elements of its
    operand as it reads, at no cost.
    """
    if size is None:
        return False
    return size <= (before if is_repeated else max(before, growth_limit))


def static_nbytes(info: TensorStructInfo) -> int | None:
    """The bytes of a tensor; ``None`` if its shape or dtype is not known, or a size is symbolic."""
    if info.dims is None or info.dtype is None:
        return None
    extents = [d for d in info.dims if isinstance(d, int)]
    if len(extents) < len(info.dims):
        return None
    return math.prod(extents) * np.dtype(info.dtype).itemsize
