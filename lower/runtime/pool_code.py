"""The machine code of a thread pool: parallel regions whose chunks are claimed by idle threads.

A region is a task ``void task(ptr context, i64 begin, i64 end)`` over iterations that are split
into chunks.  Threads claim a chunk by decrementing `_LEFT` with compare-and-swap.  The caller
claims chunks like the workers, and then waits until all chunks are done, not until all threads
arrive: a thread that the system suspends delays only its own chunk.  The pool runs one region at a
time; a caller that finds the pool busy runs its region serially.

A waiting thread spins for `SPIN` nanoseconds and then sleeps, as `systems` says.  A pool of zeros,
except for its first words, is unused: a child of ``fork`` resets its pools to that.
"""

from relax_egraph.lower.emit.emitter import Function
from relax_egraph.lower.emit.instructions import Operand, Value
from relax_egraph.lower.emit.module_text import I8, I32, I64, PTR, Module
from relax_egraph.lower.emit.target import Target
from relax_egraph.lower.runtime.synchronization import (
    atomic_add,
    atomic_load,
    atomic_store,
    exchange,
    spin,
)
from relax_egraph.lower.runtime.systems import System

SYMBOL = "run_region"

SIZE = 512
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
_SLEEP = STATE + 5 * 64  # two lines of the system


def pool_module(target: Target, system: System) -> Module:
    """The module of ``run_region``."""
    module = Module(target)
    system.define(module)
    _define_work(module, system)
    _define_worker(module, system)
    _define_start(module, system)
    _define_wake(module, system)
    _define_run(module, system)
    return module


def _define_run(module: Module, system: System) -> None:
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
            system.mark(_at(pool, _PROCESSOR))
            chunks = f.convert("trunc", count, I32)
            atomic_store(chunks, _at(pool, _LEFT))
            with f.when(f.compare("!=", atomic_load(_at(pool, _SLEEPERS)), 0)):
                f.call("wake", pool, chunks - 1, cost)
            f.call("work", pool)
            _join(f, pool, chunks, system)
            atomic_store(f.const(I32, 0), _at(pool, _BUSY))
        with serial:
            f.call_pointer(task, context, f.const(I64, 0), turns)
    f.finish()


def _join(f: Function, pool: Value, chunks: Value, system: System) -> None:
    """Wait until all `chunks` are done; the thread that finishes the last one wakes the caller."""
    done = _at(pool, _DONE)
    spin(f, lambda: f.compare("==", atomic_load(done), chunks))
    with f.when(f.compare("!=", atomic_load(done), chunks)):
        atomic_store(f.const(I32, 1), _at(pool, _WAITING))
        with f.forever() as leave:
            count = atomic_load(done)
            leave(f.compare("==", count, chunks))
            system.wait(_at(pool, _SLEEP), done, count)
        atomic_store(f.const(I32, 0), _at(pool, _WAITING))


def _define_work(module: Module, system: System) -> None:
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
                system.wake(_at(pool, _SLEEP), _at(pool, _DONE), f.const(I32, 1))
    f.finish()


def _define_worker(module: Module, system: System) -> None:
    """``worker(pool)``: run chunks whenever there are some; ends with the process."""
    f = Function(module, "worker", (PTR,), result=PTR, internal=True)
    (pool,) = f.args
    left = _at(pool, _LEFT)
    known = system.begin_worker(f)
    with f.forever():
        spin(f, lambda: f.compare("!=", atomic_load(left), 0))
        with f.when(f.compare("==", atomic_load(left), 0)):
            atomic_add(_at(pool, _SLEEPERS), 1)
            system.wait(_at(pool, _SLEEP), left, f.const(I32, 0))
            atomic_add(_at(pool, _SLEEPERS), -1)
        system.leave(_at(pool, _PROCESSOR), known)
        f.call("work", pool)
    f.finish(f.const(PTR, 0))


def _define_start(module: Module, system: System) -> None:
    """``start(pool)``: start its workers, as many as the system allows."""
    f = Function(module, "start", (PTR,), internal=True)
    (pool,) = f.args
    f.store(f.const(I32, 1), _at(pool, _STARTED))
    system.prepare(_at(pool, _SLEEP))
    system.start(f, "worker", pool, f.load(_at(pool, THREADS), I64) - 1)
    f.finish()


def _define_wake(module: Module, system: System) -> None:
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
        system.wake(_at(pool, _SLEEP), _at(pool, _LEFT), threads)
    f.finish()


def _at(pool: Value, offset: int) -> Value:
    return pool.function.address(pool, offset, I8)


def _quotient_up(a: Value, b: Operand) -> Value:
    f = a.function
    return f.binary("udiv", a + b - 1, b)
