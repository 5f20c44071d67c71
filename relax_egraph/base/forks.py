"""Children of ``fork``: locks that are free in them, and libraries whose threads are not there.

A child has one thread, the one that forked.  A lock that another thread held would stay locked in
it for ever, and what it guards half changed.  So the thread that forks takes these locks first.
"""

import os
import sys
from contextlib import ExitStack
from threading import RLock
from typing import Protocol, TypeVar
from weakref import WeakSet


class Lock(Protocol):
    """``threading.Lock`` or ``threading.RLock``."""

    def acquire(self, blocking: bool = True) -> bool: ...  # noqa: D102

    def release(self) -> None: ...  # noqa: D102


L = TypeVar("L", bound=Lock)

_locks = WeakSet[Lock]()
_forking = RLock()
_taken = ExitStack()
_inherited = frozenset[str]()


def free_in_forks(lock: L) -> L:
    """`lock`, which no other thread will hold while this one forks.

    Fork waits for it: it is for locks that are held for a moment.
    """
    _locks.add(lock)
    return lock


def is_inherited(module: str) -> bool:
    """Whether a process that this one is a fork of has loaded `module`.

    The threads that it started there are not here.
    """
    return module in _inherited


def _take() -> None:
    _forking.acquire()
    while (busy := _first_busy()) is not None:
        busy.acquire()
        busy.release()


def _first_busy() -> Lock | None:
    """Take all locks, or none if one is held elsewhere: its holder may wait for another one."""
    with ExitStack() as stack:
        for lock in tuple(_locks):
            if not lock.acquire(blocking=False):
                return lock
            stack.callback(lock.release)
        _taken.push(stack.pop_all())
    return None


def _release() -> None:
    _taken.close()
    _forking.release()


def _begin_child() -> None:
    global _inherited
    _inherited = frozenset(sys.modules)
    _release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_take, after_in_parent=_release, after_in_child=_begin_child)
