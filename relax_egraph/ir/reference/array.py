"""Helpers of several families of references: arrays, and rounding once."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
Axes: TypeAlias = tuple[int, ...] | None

Reference: TypeAlias = Callable[..., Any]
"""A function of operands (arrays, shapes, tuples of arrays, host scalars) and complete attributes;
its result may be a view of an operand, or a scalar of numpy."""


def in_double(f: Callable[..., Array]) -> Reference:
    """`f` computed of float64 operands, rounded to the first operand's dtype."""

    def rounded(*operands: Array, **attrs: Any) -> Array:
        wide = [o.astype(np.float64) for o in operands]
        return np.asarray(f(*wide, **attrs)).astype(operands[0].dtype)

    return rounded


def least(dtype: np.dtype[Any]) -> Any:
    """The least value of `dtype`, which is the maximum over nothing."""
    if dtype.kind == "f":
        return -np.inf
    return False if dtype.kind == "b" else np.iinfo(dtype).min


def greatest(dtype: np.dtype[Any]) -> Any:
    """The greatest value of `dtype`, which is the minimum over nothing."""
    if dtype.kind == "f":
        return np.inf
    return True if dtype.kind == "b" else np.iinfo(dtype).max
