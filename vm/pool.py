"""A pool of storages, which are reused when no reference to them is left.

Fresh pages are slower than most kernels that fill them: the system clears each at its first access.
"""

import sys
from itertools import cycle
from threading import RLock

import numpy as np

from relax_egraph.base.forks import free_in_forks
from relax_egraph.vm.storage import Bytes, address_of, aligned_bytes

LEAST = 1 << 16
"""The smallest pooled storage, in bytes: the C library itself reuses smaller ones."""

LIMIT = 1 << 28
"""The most bytes of a pool, in use or not; storages beyond it return to the system."""

_PAGE = 4096
_PLACES = (640, 1408, 2176, 2944)
"""Where in their pages storages begin, in turn.

Addresses that are equal within a page share sets of a first-level cache, and a load waits for an
earlier store that looks like its own: a kernel that reads and writes at one place of all pages
takes up to 1.4 times as long.  Large arrays of others begin at byte 16 or 64.
"""


class StoragePool:
    """A thread-safe pool: hands out storages, and reuses those without tensors.

    The reference count of the bytes that own the memory decides: every tensor and every view,
    including those of the user, refers to them.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._kept: dict[int, list[tuple[Bytes, int]]] = {}
        self._places = cycle(_PLACES)
        self._bytes = 0
        self._lock = free_in_forks(RLock())  # a finalizer may call the machine meanwhile

    def take(self, size: int) -> Bytes:
        """At least `size` uninitialised bytes, aligned to 64 bytes."""
        if size < LEAST:
            return aligned_bytes(size)
        rounded = _rounded(size)
        with self._lock:
            storages = self._kept.setdefault(rounded, [])
            for owner, start in storages:
                if sys.getrefcount(owner) == _UNUSED:
                    return _part(owner, start, rounded)
            owner = np.empty(rounded + _PAGE, np.uint8)
            start = (next(self._places) - address_of(owner)) % _PAGE
            if rounded <= self._limit:
                self._make_room(rounded)
                storages.append((owner, start))
                self._bytes += rounded
            return _part(owner, start, rounded)

    def _make_room(self, size: int) -> None:
        """Drop storages, oldest sizes first, until `size` more bytes fit the limit."""
        for rounded, storages in list(self._kept.items()):
            while storages and self._bytes + size > self._limit:
                storages.pop(0)
                self._bytes -= rounded


def _part(owner: Bytes, start: int, size: int) -> Bytes:
    return owner[start : start + size]


def _references(storages: list[tuple[Bytes, int]]) -> int:
    for owner, _ in storages:
        return sys.getrefcount(owner)
    return 0


_UNUSED = _references([(np.empty(1, np.uint8), 0)])
"""The reference count of bytes that only the list of the pool and the loop over it refer to."""


def _rounded(size: int) -> int:
    """`size` rounded up to an eighth between powers of two: at most an eighth is unused."""
    step = 1 << (size.bit_length() - 4)
    return -(-size // step) * step
