"""Loading of object files into this process, by LLVM's linker."""

import ctypes
import sys
from collections.abc import Collection, Mapping
from functools import cache
from itertools import count
from operator import attrgetter
from threading import RLock

import llvmlite.binding as llvm
import numpy as np
import numpy.typing as npt
from llvmlite.binding import ffi

from relax_egraph.base.forks import free_in_forks
from relax_egraph.errors import ExecutableError
from relax_egraph.lower.emit.target import host
from relax_egraph.lower.jit.machine_code import new_machine

_numbers = count()
_lock = free_in_forks(RLock())  # a finalizer may load code meanwhile

# A thread may hold LLVM's lock, which has no public name, while another one forks.
free_in_forks(attrgetter("_lock._lock")(ffi.lib))


def unseen(thing: object) -> npt.NDArray[np.object_]:
    """A reference to `thing` that the garbage collector does not follow: an array of numpy.

    Before the collector takes a cycle apart, it calls all finalizers in it, in any order.  What the
    cycle refers to this way is not part of it, and is finalized while it is taken apart: after
    finalizers that may still use it.  `thing` must not refer to the cycle.
    """
    reference = np.empty(1, np.object_)
    reference[0] = thing
    return reference


def keep_forever(thing: object) -> None:
    """Keep `thing` alive until the process ends, beyond the interpreter."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


class Library:
    """Loaded code, which is unloaded with this object.

    A machine is a cycle, and the finalizer of an object that has one may call it: so the collector
    must not see the code.
    """

    def __init__(self, tracker: llvm.ResourceTracker, session: llvm.LLJIT) -> None:
        self._session = session  # dropped after the tracker
        self._tracker = unseen(tracker)

    @property
    def tracker(self) -> llvm.ResourceTracker:
        """The addresses of symbols, valid while this object lives."""
        return self._tracker[0]


@cache
def _session() -> llvm.LLJIT:
    on_windows = sys.platform == "win32"  # JITLink is not built there
    return llvm.create_lljit_compiler(new_machine(host()), use_jit_link=not on_windows)


def new_library(
    objects: Collection[bytes], symbols: Collection[str], known: Mapping[str, int]
) -> Library:
    """Link the objects with one another, with the `known` addresses, and with this process."""
    builder = llvm.JITLibraryBuilder().add_current_process()
    for data in objects:
        builder.add_object_img(data)
    for symbol, address in known.items():
        builder.import_symbol(symbol, address)
    for symbol in symbols:
        builder.export_symbol(symbol)
    with _lock:
        session = _session()
        try:
            tracker = builder.link(session, f"kernels{next(_numbers)}")
        except RuntimeError as error:  # a missing or duplicate symbol
            raise ExecutableError(f"kernels do not link: {error}") from None
        return Library(tracker, session)
