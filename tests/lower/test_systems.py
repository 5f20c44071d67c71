"""The code of pools for each system: it runs where it can, and needs what the system has."""

import ctypes
import threading
import time
from functools import cache

import pytest

from relax_egraph.lower.emit.emitter import Function
from relax_egraph.lower.emit.module_text import I64, PTR, Module
from relax_egraph.lower.emit.target import Target, host, this_system
from relax_egraph.lower.jit.library import Library
from relax_egraph.lower.jit.linking import load
from relax_egraph.lower.jit.machine_code import compiled_object
from relax_egraph.lower.jit.objects import symbols_of
from relax_egraph.lower.jit.processors import processor
from relax_egraph.lower.runtime.driver import driver_module
from relax_egraph.lower.runtime.pool_code import RUN, SIZE, SYMBOL, THREADS, pool_module
from relax_egraph.lower.runtime.systems import system_of
from relax_egraph.lower.runtime.systems.posix import Posix
from relax_egraph.lower.runtime.workspace_code import heap_module, workspace_module
from tests.lower.test_thread_pool import chunks_of, run_region

LINUX = Posix(clock=1, block=0, restore=2)
"""POSIX with the numbers of Linux, where its pools are run."""

PTHREADS = {
    *("pthread_create", "pthread_detach", "pthread_sigmask", "sigfillset", "clock_gettime"),
    *("pthread_mutex_init", "pthread_mutex_lock", "pthread_mutex_unlock"),
    *("pthread_cond_init", "pthread_cond_wait", "pthread_cond_broadcast"),
}
WINDOWS = {
    *("CreateThread", "CloseHandle", "WaitOnAddress", "WakeByAddressAll"),
    *("QueryPerformanceCounter", "QueryPerformanceFrequency"),
}
HEAP = {
    *("calloc", "free", "malloc", "posix_memalign"),
    *("pthread_getspecific", "pthread_setspecific", "workspace_key"),
}
NEEDED = {
    "darwin-aarch64:apple-m1": PTHREADS,
    "darwin-x86_64": PTHREADS,
    "win32-x86_64": WINDOWS,
    "win32-aarch64": WINDOWS,
}


def needed_by(text: str, target: Target) -> frozenset[str]:
    """What the object of `text` needs from the system."""
    return symbols_of(compiled_object(text, target), target).needed


@pytest.mark.parametrize("name", NEEDED)
def test_a_pool_needs_what_the_system_has(name: str) -> None:
    target = processor(name)
    system = system_of(target)
    assert system is not None

    assert needed_by(str(pool_module(target, system)), target) == NEEDED[name]


@pytest.mark.parametrize("name", NEEDED)
def test_scratch_memory_and_driver_compile(name: str) -> None:
    target = processor(name)
    workspace = workspace_module if target.system == "darwin" else heap_module

    assert needed_by(workspace(target), target) <= HEAP
    clock = {"time" if target.system == "darwin" else "_time64"}
    others = {f for f in needed_by(str(driver_module(target)), target) if not f.startswith("Py")}
    assert others - {"memcpy", "memmove", "memset"} == clock


@pytest.mark.parametrize("name", NEEDED)
def test_a_large_frame_is_probed_where_the_stack_grows_page_by_page(name: str) -> None:
    target = processor(name)
    module = Module(target)
    f = Function(module, "f", (PTR,))
    f.store(f.allocate(I64, 1 << 13), f.args[0])
    f.finish()

    probes = {"__chkstk"} if target.system == "win32" else set[str]()
    assert needed_by(str(module), target) == probes


@cache
def library() -> Library:
    module = pool_module(host(), LINUX)
    return load([compiled_object(str(module), host())], [SYMBOL])


def pool_of(threads: int) -> int:
    """A pool that lives as long as the process, as its workers do."""
    memory = (ctypes.c_char * (SIZE + 64))()
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(memory))
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(library()))
    address = (ctypes.addressof(memory) + 63) & -64
    ctypes.c_int64.from_address(address + RUN).value = library().tracker[SYMBOL]
    ctypes.c_int64.from_address(address + THREADS).value = threads
    return address


@pytest.mark.skipif(this_system() != "linux", reason="has the numbers of Linux")
def test_a_pool_of_posix_runs_each_turn_once() -> None:
    pool = pool_of(4)

    for turns in (1, 3, 64, 1000):
        chunks = chunks_of(pool, turns)

        ends = [0, *(end for _, end in chunks)]
        assert ([begin for begin, _ in chunks], ends[-1]) == (ends[:-1], turns)


@pytest.mark.skipif(this_system() != "linux", reason="has the numbers of Linux")
def test_workers_of_posix_that_sleep_are_woken() -> None:
    pool = pool_of(2)

    for pause in (0, 0.001, 0.01):
        meeting = threading.Barrier(2, timeout=60)
        run_region(pool, lambda begin, end, meeting=meeting: meeting.wait(), 2)
        time.sleep(pause)


@pytest.mark.skipif(this_system() != "linux", reason="has the numbers of Linux")
def test_a_caller_of_posix_that_sleeps_is_woken() -> None:
    caller = threading.get_ident()

    def slow(begin: int, end: int) -> None:
        meeting.wait()
        if threading.get_ident() != caller:
            time.sleep(0.02)

    meeting = threading.Barrier(2, timeout=60)
    pool = pool_of(2)
    for _ in range(3):
        run_region(pool, slow, 2)
