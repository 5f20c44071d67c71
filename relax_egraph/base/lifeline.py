"""Processes that end with the one that started them, however that ends and whatever they do.

The parent holds one end of a pipe that nobody writes to.  When the parent is gone, the system sends
SIGIO to the process at the other end, which ends it, also while it holds the interpreter's lock.
(The parent-death signal of Linux comes when a thread ends: the one that started the process.)
Where there is no SIGIO, a process ends when it reads the end of its standard input.
"""

import ctypes
import os
import select
import signal
import sys
from subprocess import Popen
from threading import Lock
from typing import Any
from weakref import WeakSet, finalize

from relax_egraph.base.forks import free_in_forks

if sys.platform != "win32":
    import fcntl


class TiedProcess(Popen[bytes]):
    """A Python process that runs `program`; ``relax_egraph`` is to be on its path.

    Raises ``OSError`` if none can be started.
    """

    def __init__(self, program: str, **options: Any) -> None:
        if sys.platform == "win32":
            super().__init__([sys.executable, "-c", program], **options)
            return
        with _starting:
            line, held = os.pipe()
            self.let_go = finalize(self, os.close, held)
            _tied.add(self)
            tie = f"from relax_egraph.base.lifeline import hold; hold({line})"
            try:
                command = [sys.executable, "-c", f"{tie}\n{program}"]
                super().__init__(command, pass_fds=(line,), **options)
            finally:
                os.close(line)


def hold(line: int) -> None:
    """End this process when no one holds the other end of `line`."""
    if sys.platform != "win32":
        if sys.platform == "linux":
            signal.signal(signal.SIGIO, signal.SIG_DFL)
        else:  # SIGIO does nothing by default, and Python's handlers wait for the lock
            c = ctypes.CDLL(None)
            c.signal(signal.SIGIO, c._exit)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGIO])
        fcntl.fcntl(line, fcntl.F_SETOWN, os.getpid())
        flags = fcntl.fcntl(line, fcntl.F_GETFL)
        fcntl.fcntl(line, fcntl.F_SETFL, flags | os.O_ASYNC)
        if select.select([line], [], [], 0)[0]:  # it was closed before
            os._exit(1)


_starting = free_in_forks(Lock())
_tied = WeakSet[TiedProcess]()


def _let_go() -> None:
    """In a fork: what its parent started ends with its parent."""
    for process in tuple(_tied):
        process.let_go()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)
