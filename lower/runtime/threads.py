"""Thread pools for kernels: one for each number of threads in use.

    link(compiled, thread_pool(4))

A pool starts its workers at the first loop that is worth it and keeps them until the process ends;
they sleep while there is no work.  A child of ``fork`` starts its own.  There are pools on Linux,
macOS and Windows; elsewhere kernels run on the caller's thread.
"""

import ctypes
import operator
import os
from functools import cache

from relax_egraph.base.parameters import MOST_THREADS
from relax_egraph.lower.emit.target import host
from relax_egraph.lower.jit.library import keep_forever
from relax_egraph.lower.jit.linking import load
from relax_egraph.lower.jit.machine_code import cached_object
from relax_egraph.lower.jit.object_cache import default_cache
from relax_egraph.lower.runtime.pool_code import RUN, SIZE, STATE, SYMBOL, THREADS, pool_module
from relax_egraph.lower.runtime.systems import system_of

ENVIRONMENT = "RELAX_EGRAPH_NUM_THREADS"
"""The environment variable that sets the number of threads if the program does not."""

_pools: dict[int, int] = {}


def thread_count(number: int | None = None) -> int:
    """The `number` of threads, by default that of `ENVIRONMENT`, else the number of processors.

    The processors are those this process may use.  Raises ``ValueError`` for a number outside 1 to
    `MOST_THREADS`.
    """
    if number is not None:
        return _in_range(operator.index(number), f"num_threads is {number}")
    text = os.environ.get(ENVIRONMENT)
    if text:
        where = f"{ENVIRONMENT} is {text!r}"
        return _in_range(int(text) if text.strip().isdecimal() else 0, where)
    return min(_processors(), MOST_THREADS)


def thread_pool(num_threads: int) -> int:
    """The address of the pool of `num_threads` threads, including the caller's; 0 for one thread.

    It is valid until the process ends.  It is 0, too, on systems without pools.
    """
    if num_threads == 1 or system_of(host()) is None:
        return 0
    if num_threads not in _pools:
        # If two threads race here, one of them makes a pool that is never used.
        _pools.setdefault(num_threads, _new_pool(num_threads))
    return _pools[num_threads]


def _in_range(number: int, what: str) -> int:
    if not 1 <= number <= MOST_THREADS:
        raise ValueError(f"{what}: needs a number of threads from 1 to {MOST_THREADS}")
    return number


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _new_pool(num_threads: int) -> int:
    memory = (ctypes.c_char * (SIZE + 64))()
    keep_forever(memory)  # workers run until the process ends
    address = (ctypes.addressof(memory) + 63) & -64
    ctypes.c_int64.from_address(address + RUN).value = _run_region()
    ctypes.c_int64.from_address(address + THREADS).value = num_threads
    return address


@cache
def _run_region() -> int:
    system = system_of(host())
    assert system is not None
    module = pool_module(host(), system)
    library = load([cached_object(str(module), host(), default_cache())], [SYMBOL])
    keep_forever(library)
    return library.tracker[SYMBOL]


def _forget_workers() -> None:
    for address in _pools.values():
        ctypes.memset(address + STATE, 0, SIZE - STATE)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_workers)
