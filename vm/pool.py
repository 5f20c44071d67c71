"""Memory that is used again: a storage comes back when nothing refers to it any more.

Fresh pages cost more than most kernels that fill them: the system clears each at its first touch.
"""

import sys
from threading import Lock

import numpy as np

from relax_egraph.base.forks import free_in_forks
from relax_egraph.vm.storage import Bytes, aligned_bytes

LEAST = 1 << 16
"""Smaller storages are not pooled: the allocator of the C library keeps them itself."""

LIMIT = 1 << 28
"""Bytes that a pool keeps at most, in use or not; what is beyond goes back to the system."""


class StoragePool:
    """Hands out storages, and again those of which no tensor is left.  Any thread may take one.

    Whether one is left is seen from the reference count of the bytes that own the memory: every
    tensor and every view of it, also in the user's hands, refers to them.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._kept: dict[int, list[Bytes]] = {}
        self._bytes = 0
        self._lock = free_in_forks(Lock())

    def take(self, size: int) -> Bytes:
        """At least `size` uninitialised bytes, on a 64-byte line."""
        if size < LEAST:
            return aligned_bytes(size)
        rounded = _rounded(size)
        with self._lock:
            kept = self._kept.setdefault(rounded, [])
            for place, count in enumerate(_references(kept)):
                if count == _UNUSED:
                    return aligned_bytes(rounded, kept[place])
            storage = aligned_bytes(rounded)
            owner = storage.base
            if isinstance(owner, np.ndarray) and rounded <= self._limit:
                self._make_room(rounded)
                kept.append(owner)
                self._bytes += rounded
            return storage

    def _make_room(self, size: int) -> None:
        """Forget storages, of the sizes used first, until `size` more bytes are in the limit."""
        for rounded, kept in self._kept.items():
            while kept and self._bytes + size > self._limit:
                kept.pop(0)
                self._bytes -= rounded


def _references(kept: list[Bytes]) -> list[int]:
    return [sys.getrefcount(owner) for owner in kept]


_UNUSED = _references([np.empty(1, np.uint8)])[0]
"""What is counted for bytes that only the pool's list refers to."""


def _rounded(size: int) -> int:
    """`size` rounded up to one of eight steps between powers of two: at most an eighth is lost."""
    step = 1 << (size.bit_length() - 4)
    return -(-size // step) * step
