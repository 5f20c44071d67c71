"""Deferred tensors: computed when they are stored, as until then only their types matter."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]


class Deferred(np.ndarray[Any, np.dtype[Any]]):
    """A placeholder for the array that `make` returns, of its shape and dtype, without memory.

    Its elements must not be read: they are zeros.
    """

    make: Callable[[], Array]


def deferred(shape: tuple[int, ...], dtype: np.dtype[Any], make: Callable[[], Array]) -> Deferred:
    """A placeholder for the result of `make`, which has `shape` and `dtype`."""
    array = np.broadcast_to(np.zeros((), dtype), shape).view(Deferred)
    array.make = make
    return array


def materialize(array: Array) -> Array:
    """`array` itself, or the array that it stands for, which is computed once."""
    if not isinstance(array, Deferred):
        return array
    result = array.make()
    array.make = lambda: result
    return result
