"""The functions by which kernels allocate from the workspace of their thread.

A thread gets a workspace when it runs its first kernel with scratch memory; the workspace is freed
when the thread ends.  A child of ``fork`` keeps that of its thread.
"""

import ctypes
import os
from collections.abc import Mapping
from functools import cache

from relax_egraph.lower.emit.target import host
from relax_egraph.lower.jit.library import keep_forever, new_library
from relax_egraph.lower.jit.machine_code import cached_object
from relax_egraph.lower.jit.object_cache import default_cache
from relax_egraph.lower.runtime.workspace_code import (
    END,
    KEY,
    RELEASE,
    TAKE,
    heap_module,
    workspace_module,
)

WORKSPACE_SYMBOLS = frozenset({TAKE, RELEASE})
"""The symbols that the objects of kernels leave undefined."""


@cache
def workspace_functions() -> Mapping[str, int]:
    """The addresses of `WORKSPACE_SYMBOLS`, valid until the process ends.

    If two threads race here, one of them makes workspaces that few kernels use.
    """
    has_threads = os.name == "posix"
    text = (workspace_module if has_threads else heap_module)(host())
    key = ctypes.c_int64(0)
    addresses = {KEY: ctypes.addressof(key)} if has_threads else {}
    symbols = [*WORKSPACE_SYMBOLS, *([END] if has_threads else [])]
    data = cached_object(text, host(), default_cache())
    library = new_library([data], symbols, addresses)
    if has_threads:
        _make_key(key, library.tracker[END])
    for thing in (key, library):  # threads may outlive the interpreter
        keep_forever(thing)
    return {symbol: library.tracker[symbol] for symbol in WORKSPACE_SYMBOLS}


def _make_key(key: ctypes.c_int64, destructor: int) -> None:
    create = ctypes.CDLL(None).pthread_key_create
    error = create(ctypes.byref(key), ctypes.c_void_p(destructor))
    if error:
        raise OSError(error, f"no key for the scratch memory of threads: {os.strerror(error)}")
