"""Caches of the keys and values of attention, which grow by an append for each token.

An append writes after the existing rows.  The capacity doubles when it is exhausted, so each row is
copied at most twice on average; a view copies nothing.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from relax_egraph.errors import RunError
from relax_egraph.vm.builtins.builtin import Builtin, Packed, bound, of_values, wrong
from relax_egraph.vm.builtins.memory import element_type
from relax_egraph.vm.matching import describe, is_shape, shape_text
from relax_egraph.vm.storage import aligned_bytes, tensor_at

Array = npt.NDArray[Any]


class KVCache:
    """A growable array of rows of one shape and dtype."""

    def __init__(self, room: Array) -> None:
        self._room = room
        self.length = 0

    @property
    def row(self) -> tuple[int, ...]:
        """The shape of a row."""
        return self._room.shape[1:]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of all rows."""
        return self._room.dtype

    def append(self, rows: Array) -> None:
        """Append `rows`."""
        needed = self.length + len(rows)
        if needed > len(self._room):
            larger = _tensor((max(needed, 2 * len(self._room)), *self.row), self.dtype)
            larger[: self.length] = self._room[: self.length]
            self._room = larger
        self._room[self.length : needed] = rows
        self.length = needed

    def view(self) -> Array:
        """A read-only view of all rows so far; it does not grow with later appends."""
        rows = self._room[: self.length]
        rows.flags.writeable = False
        return rows


def kv_cache_create(dtype: str) -> Packed:
    """An empty cache of `dtype`; its shape operand is the capacity, then the shape of a row."""
    element = element_type(dtype)

    def create(shape: Any) -> KVCache:
        if not is_shape(shape) or not shape or min(shape) < 0:
            raise wrong("kv_cache_create", "shape", shape, "a shape of rank 1 or more")
        return KVCache(_tensor(shape, element))

    return create


def kv_cache_append(cache: Any, x: Any) -> KVCache:
    """The cache itself, with the rows of `x` appended."""
    checked = _cache("kv_cache_append", cache)
    fits = isinstance(x, np.ndarray) and x.ndim and x.shape[1:] == checked.row
    if not fits or x.dtype != checked.dtype:
        extents = ", ".join(map(str, ("_", *checked.row)))
        needs = f'R.Tensor(({extents}), "{checked.dtype.name}")'
        raise wrong("kv_cache_append", "x", x, needs)
    checked.append(x)
    return checked


def kv_cache_length(cache: Any) -> int:
    """The number of rows in the cache."""
    return _cache("kv_cache_length", cache).length


def kv_cache_view(cache: Any, shape: Any) -> Array:
    """A read-only view of the rows of the cache, which must have `shape`."""
    rows = _cache("kv_cache_view", cache).view()
    if not is_shape(shape) or rows.shape != shape:
        expected = shape_text(shape) if is_shape(shape) else describe(shape)
        raise RunError(f"vm.builtin.kv_cache_view: the rows are {describe(rows)}, needs {expected}")
    return rows


def _cache(name: str, value: Any) -> KVCache:
    if type(value) is not KVCache:
        raise wrong(name, "cache", value, "a cache from kv_cache_create")
    return value


def _tensor(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    size = math.prod(shape) * dtype.itemsize
    try:
        return tensor_at(aligned_bytes(size), 0, shape, dtype)
    except (MemoryError, ValueError, OverflowError):
        raise RunError(f"a cache of {size} bytes cannot be allocated") from None


KV_CACHE: tuple[Builtin, ...] = (
    bound(kv_cache_create, "shape"),
    of_values(kv_cache_append),
    of_values(kv_cache_length),
    of_values(kv_cache_view),
)
