"""Arithmetic and comparisons of dimensions, elementwise on arrays of them."""

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from relax_egraph.frontends.building.elements import MOST, Array
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim

Test: TypeAlias = Callable[[Dim], bool]


def check_size(shape: Sequence[int]) -> None:
    """Raise ``ValueError`` for a tensor too large to be folded, before it is made."""
    if math.prod(shape) > MOST:
        raise ValueError(f"more than {MOST} elements")


def each(function: Callable[..., Any], *arrays: Array) -> Array:
    """`function` applied to the elements of `arrays`, with broadcasting."""
    check_size(np.broadcast_shapes(*(a.shape for a in arrays)))
    broadcast = np.broadcast_arrays(*arrays)
    result = np.empty(broadcast[0].shape, object)
    result.reshape(-1)[:] = [
        function(*some) for some in zip(*(b.reshape(-1).tolist() for b in broadcast), strict=True)
    ]
    return result


def decided(function: Callable[..., Any], *arrays: Array) -> Array | None:
    """The same, or ``None`` if `function` is ``None`` for some elements: it is undecided."""
    result = each(function, *arrays)
    return None if any(e is None for e in result.reshape(-1).tolist()) else result


def quotient(a: Dim, b: Dim, is_nonnegative: Test) -> Dim | None:
    """``a / b`` rounded towards 0; undecided for a divisor of 0.

    `is_nonnegative` tells which dimensions are known to be nonnegative.
    """
    if b != 0 and dims.mod(a, b) == 0:
        return dims.floordiv(a, b)
    if b == 0 or not dims.prove_ge(b, 1):
        return None
    if isinstance(a, int):
        return dims.floordiv(a, b) if a >= 0 else dims.mul(-1, dims.floordiv(-a, b))
    return dims.floordiv(a, b) if is_nonnegative(a) else None


def remainder(a: Dim, b: Dim, is_nonnegative: Test) -> Dim | None:
    """The remainder of `quotient`."""
    if b != 0 and dims.mod(a, b) == 0:
        return 0
    return dims.mod(a, b) if dims.prove_ge(b, 1) and is_nonnegative(a) else None


def equal(a: Dim, b: Dim) -> bool | None:
    """Whether `a` is `b`, if that is decided."""
    if dims.equal(a, b):
        return True
    return False if dims.distinct(a, b) else None


def less(a: Dim, b: Dim) -> bool | None:
    """Whether `a` is less than `b`, if that is decided."""
    if dims.prove_ge(b, dims.add(a, 1)):
        return True
    return False if dims.prove_ge(a, b) else None


def less_or_equal(a: Dim, b: Dim) -> bool | None:
    """Whether `a` is `b` or less, if that is decided."""
    greater = less(b, a)
    return None if greater is None else not greater
