"""Orders of axes in memory: torch's strides, for modules whose tensors are all row-major.

A tensor in channels-last layout, or transposed, is a row-major tensor of other axes.  As a
parameter it is that tensor, permuted within the module; so is a result, whose permutation torch
then sees as strides.  Neither costs a copy.
"""

from typing import Any

import torch

Order = tuple[int, ...]
"""The axes of a tensor from the slowest to the fastest."""


def memory_order(value: torch.Tensor) -> Order | None:
    """The order of the axes of `value` in memory; ``None`` if they are in order, or not dense."""
    sizes = [_hint(size) for size in value.shape]
    strides = [_hint(stride) for stride in value.stride()]
    order = tuple(sorted(range(len(sizes)), key=lambda axis: (-strides[axis], axis)))
    dense = 1
    for axis in reversed(order):
        if sizes[axis] != 1 and strides[axis] != dense:
            return None
        dense *= sizes[axis]
    counting = [axis for axis in order if sizes[axis] != 1]
    return None if counting == sorted(counting) else order


def inverse(order: Order) -> Order:
    """The permutation that undoes `order`."""
    return tuple(order.index(axis) for axis in range(len(order)))


def _hint(size: Any) -> int:
    """`size`, or what it was when the graph was traced."""
    return int(size.node.hint or 1) if isinstance(size, torch.SymInt) else int(size)
