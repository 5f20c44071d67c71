"""The machine code of a thread pool: parallel regions whose chunks are claimed by idle threads.

A region is a task ``void task(ptr context, i64 begin, i64 end)`` over iterations that are split
into chunks.  Threads claim a chunk by decrementing `_LEFT` with compare-and-swap.  The caller
claims chunks like the workers, and then waits until all chunks are done, not until all threads
arrive: a thread that the system suspends delays only its own chunk.  The pool runs one region at a
time; a caller that finds the pool busy runs its region serially.

A waiting thread spins for `SPIN` nanoseconds and then sleeps on a futex.  Linux often wakes a
thread on the processor of its waker, which is busy, and keeps it there (on an idle machine, two
threads took the time of one until they ended); so a worker that runs on the caller's processor
leaves it.  A pool of zeros, except for its first words, is unused: a child of ``fork`` resets its
pools to that.
"""

import signal

from relax_egraph.lower.emit.emitter import Function
from relax_egraph.lower.emit.instructions import Operand, Value
from relax_egraph.lower.emit.module_text import I8, I32, I64, PTR, Module
from relax_egraph.lower.emit.target import Target
from relax_egraph.lower.runtime.synchronization import (
    WAIT,
    WAKE,
    atomic_add,
    atomic_load,
    atomic_store,
    define_now,
    exchange,
    futex,
    spin,
)

SYMBOL = "run_region"

SIZE = 384
"""The bytes of a pool, which is aligned to a cache line."""

RUN, THREADS, STATE = 0, 8, 64
"""Offsets in a pool: the address of ``run_region``, the number of threads, and the mutable state.

``run_region(ptr pool, ptr task, ptr context, i64 turns, i64 cost)``: `cost` is that of the whole
region, in picoseconds.
"""

CHUNKS = 4
"""The maximal number of chunks for each thread; more than one, to balance slow threads."""

SMALLEST_CHUNK = 1_000_000
"""The minimal cost of a chunk in picoseconds, above the overhead of sharing it."""

WORTH_WAKING = 50_000_000
"""The cost in picoseconds, of one region or several, for which sleeping workers are woken.

Measured in a virtual machine: a wake-up takes 8 µs of the caller, and the worker runs after 25 µs.
"""

RECENT = 100_000
"""The nanoseconds for which regions that woke no worker are remembered."""

# Each cache line is written by one group of threads: the caller, the claiming, the finishing.
_TASK, _CONTEXT, _TURNS, _CHUNK, _COUNT = range(STATE, STATE + 40, 8)
_LEFT, _DONE, _SLEEPERS, _BUSY = range(STATE + 64, STATE + 64 + 4 * 64, 64)
_WAITING, _STARTED, _PROCESSOR = _SLEEPERS + 4, _BUSY + 4, _COUNT + 8
_MISSED, _LAST = _BUSY + 8, _BUSY + 16

_MASK_WORDS = 16  # glibc's cpu_set_t


def pool_module(target: Target, machine: str) -> Module:
    """The module of ``run_region``, for Linux on `machine`, a key of `FUTEX`."""
    module = Module(target)
    define_now(module)
    _define_work(module, machine)
    _define_leave(module)
    _define_worker(module, machine)
    _define_start(module)
    _define_wake(module, machine)
    _define_run(module, machine)
    return module


def _define_run(module: Module, machine: str) -> None:
    f = Function(module, SYMBOL, (PTR, PTR, PTR, I64, I64))
    pool, task, context, turns, cost = f.args
    most = f.minimum(f.load(_at(pool, THREADS), I64) * CHUNKS, turns)
    wanted = f.minimum(most, f.binary("udiv", cost, SMALLEST_CHUNK))
    alone = f.allocate(I64, 1)
    f.store(f.const(I64, 1), alone)
    with f.when(f.compare(">", wanted, 1)):
        was_busy, _ = exchange(_at(pool, _BUSY), f.const(I32, 0), f.const(I32, 1))
        f.store(f.convert("zext", was_busy, I64), alone)
    with f.either(f.compare("==", f.load(alone, I64), 0)) as (shared, serial):
        with shared:
            with f.when(f.compare("==", f.load(_at(pool, _STARTED), I32), 0)):
                f.call("start", pool)
            chunk = _quotient_up(turns, wanted)
            count = _quotient_up(turns, chunk)
            for place, value in (
                *((_TASK, task), (_CONTEXT, context)),
                *((_TURNS, turns), (_CHUNK, chunk), (_COUNT, count)),
            ):
                f.store(value, _at(pool, place))
            atomic_store(f.const(I32, 0), _at(pool, _DONE))
            atomic_store(f.call_value("sched_getcpu", I32), _at(pool, _PROCESSOR))
            chunks = f.convert("trunc", count, I32)
            atomic_store(chunks, _at(pool, _LEFT))
            with f.when(f.compare("!=", atomic_load(_at(pool, _SLEEPERS)), 0)):
                f.call("wake", pool, chunks - 1, cost)
            f.call("work", pool)
            _join(f, pool, chunks, machine)
            atomic_store(f.const(I32, 0), _at(pool, _BUSY))
        with serial:
            f.call_pointer(task, context, f.const(I64, 0), turns)
    f.finish()


def _join(f: Function, pool: Value, chunks: Value, machine: str) -> None:
    """Wait until all `chunks` are done; the thread that finishes the last one wakes the caller."""
    done = _at(pool, _DONE)
    spin(f, lambda: f.compare("==", atomic_load(done), chunks), machine)
    with f.when(f.compare("!=", atomic_load(done), chunks)):
        atomic_store(f.const(I32, 1), _at(pool, _WAITING))
        with f.forever() as leave:
            count = atomic_load(done)
            leave(f.compare("==", count, chunks))
            futex(done, WAIT, count, machine)
        atomic_store(f.const(I32, 0), _at(pool, _WAITING))


def _define_work(module: Module, machine: str) -> None:
    """``work(pool)``: claim and run chunks until none is left."""
    f = Function(module, "work", (PTR,), internal=True)
    (pool,) = f.args
    with f.forever() as leave:
        left = atomic_load(_at(pool, _LEFT))
        leave(f.compare("==", left, 0))
        _, claimed = exchange(_at(pool, _LEFT), left, left - 1)
        with f.when(claimed):
            # The region cannot end before this chunk, so these are its fields.
            task, context = (f.load(_at(pool, place), PTR) for place in (_TASK, _CONTEXT))
            turns, chunk, count = (f.load(_at(pool, p), I64) for p in (_TURNS, _CHUNK, _COUNT))
            begin = (count - f.convert("zext", left, I64)) * chunk
            f.call_pointer(task, context, begin, f.minimum(begin + chunk, turns))
            # A locked addition, which also completes the non-temporal stores of the chunk.
            done = atomic_add(_at(pool, _DONE), 1) + 1
            last = f.compare("==", done, f.convert("trunc", count, I32))
            sleeps = f.compare("!=", atomic_load(_at(pool, _WAITING)), 0)
            with f.when(last & sleeps):
                futex(_at(pool, _DONE), WAKE, f.const(I32, 1), machine)
    f.finish()


def _define_worker(module: Module, machine: str) -> None:
    """``worker(pool)``: run chunks whenever there are some; ends with the process."""
    f = Function(module, "worker", (PTR,), result=PTR, internal=True)
    (pool,) = f.args
    left = _at(pool, _LEFT)
    allowed = f.allocate(I64, _MASK_WORDS)
    bytes_ = f.const(I64, 8 * _MASK_WORDS)
    f.call_value("sched_getaffinity", I32, f.const(I32, 0), bytes_, allowed)
    with f.forever():
        spin(f, lambda: f.compare("!=", atomic_load(left), 0), machine)
        with f.when(f.compare("==", atomic_load(left), 0)):
            atomic_add(_at(pool, _SLEEPERS), 1)
            futex(left, WAIT, f.const(I32, 0), machine)
            atomic_add(_at(pool, _SLEEPERS), -1)
        here = f.call_value("sched_getcpu", I32)
        with f.when(f.compare("==", here, atomic_load(_at(pool, _PROCESSOR)))):
            f.call("leave", f.convert("zext", here, I64), allowed)
        f.call("work", pool)
    f.finish(f.const(PTR, 0))


def _define_leave(module: Module) -> None:
    """``leave(processor, allowed)``: restrict this thread to the `allowed` ones but `processor`."""
    f = Function(module, "leave", (I64, PTR), internal=True)
    processor, allowed = f.args
    mask = f.allocate(I64, _MASK_WORDS)
    with f.loop(0, _MASK_WORDS) as turns:
        word = f.load(f.address(allowed, turns.index, I64), I64)
        f.store(word, f.address(mask, turns.index, I64))
    with f.when(f.compare("<", processor, 64 * _MASK_WORDS)):
        place = f.address(mask, f.binary("udiv", processor, 64), I64)
        bit = f.const(I64, 1) << (processor & 63)
        f.store(f.load(place, I64) & (bit ^ -1), place)
        # If no processor remains, the call fails and changes nothing.
        bytes_ = f.const(I64, 8 * _MASK_WORDS)
        f.call_value("sched_setaffinity", I32, f.const(I32, 0), bytes_, mask)
    f.finish()


def _define_start(module: Module) -> None:
    """``start(pool)``: start its workers, as many as the system allows, with signals blocked."""
    f = Function(module, "start", (PTR,), internal=True)
    (pool,) = f.args
    f.store(f.const(I32, 1), _at(pool, _STARTED))
    all_signals, before, thread = (f.allocate(I64, words) for words in (16, 16, 1))
    f.call_value("sigfillset", I32, all_signals)
    block, restore = (f.const(I32, how) for how in (signal.SIG_BLOCK, signal.SIG_SETMASK))
    f.call_value("pthread_sigmask", I32, block, all_signals, before)
    null, worker = f.const(PTR, 0), Value(f, PTR, "@worker")
    with f.loop(1, f.load(_at(pool, THREADS), I64)):
        failed = f.call_value("pthread_create", I32, thread, null, worker, pool)
        with f.when(f.compare("==", failed, 0)):
            f.call_value("pthread_detach", I32, f.load(thread, I64))
    f.call_value("pthread_sigmask", I32, restore, before, null)
    f.finish()


def _define_wake(module: Module, machine: str) -> None:
    """``wake(pool, threads, cost)``: wake `threads` workers, if the missed work is worth it."""
    f = Function(module, "wake", (PTR, I32, I64), internal=True)
    pool, threads, cost = f.args
    now = f.call_value("now", I64)
    is_recent = f.compare("<", now - f.load(_at(pool, _LAST), I64), RECENT)
    missed = f.select(is_recent, f.load(_at(pool, _MISSED), I64), 0) + cost
    is_worth_it = f.compare(">", missed, WORTH_WAKING)
    f.store(now, _at(pool, _LAST))
    f.store(f.select(is_worth_it, 0, missed), _at(pool, _MISSED))
    with f.when(is_worth_it):
        futex(_at(pool, _LEFT), WAKE, threads, machine)
    f.finish()


def _at(pool: Value, offset: int) -> Value:
    return pool.function.address(pool, offset, I8)


def _quotient_up(a: Value, b: Operand) -> Value:
    f = a.function
    return f.binary("udiv", a + b - 1, b)
