"""Tensors that are made when they are stored: until then a program needs their types alone."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]


class Deferred(np.ndarray[Any, np.dtype[Any]]):
    """Stands for the array that `make` returns: of its shape and dtype, with no memory of its own.

    Its elements are not to be read: they are zeros.
    """

    make: Callable[[], Array]


def deferred(shape: tuple[int, ...], dtype: np.dtype[Any], make: Callable[[], Array]) -> Deferred:
    """What stands for the result of `make`, which is of `shape` and `dtype`."""
    array = np.broadcast_to(np.zeros((), dtype), shape).view(Deferred)
    array.make = make
    return array


def made(array: Array) -> Array:
    """`array` itself, or what it stands for: that is made once, of what is then let go."""
    if not isinstance(array, Deferred):
        return array
    result = array.make()
    array.make = lambda: result
    return result
