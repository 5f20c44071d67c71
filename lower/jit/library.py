"""Loading of object files into this process, by LLVM's linker."""

import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import count
from operator import attrgetter
from threading import Lock

import llvmlite.binding as llvm
from llvmlite.binding import ffi

from relax_egraph.base.forks import free_in_forks
from relax_egraph.errors import ExecutableError
from relax_egraph.lower.emit.target import host
from relax_egraph.lower.jit.machine_code import new_machine

_numbers = count()
_lock = free_in_forks(Lock())

# A thread may hold LLVM's lock, which has no public name, while another one forks.
free_in_forks(attrgetter("_lock._lock")(ffi.lib))


@dataclass(frozen=True, slots=True)
class Library:
    """Loaded code: the addresses of symbols are in `tracker`, valid while this object lives."""

    tracker: llvm.ResourceTracker
    session: llvm.LLJIT  # dropped after the tracker


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
