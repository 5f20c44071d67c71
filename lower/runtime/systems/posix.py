"""Threads, clock and sleep of POSIX: a waiting thread sleeps on a condition under a mutex."""

from dataclasses import dataclass

from relax_egraph.lower.emit.emitter import Function
from relax_egraph.lower.emit.instructions import Value
from relax_egraph.lower.emit.module_text import I8, I32, I64, PTR, Module
from relax_egraph.lower.runtime.synchronization import atomic_load

CONDITION = 64
"""The offset of the condition, behind the mutex; both are of at most 64 bytes on every system."""

_SIGNAL_WORDS = 16  # more than any system's set of signals


@dataclass(frozen=True, slots=True)
class Posix:
    """The numbers of the monotonic clock, of ``SIG_BLOCK`` and of ``SIG_SETMASK``."""

    clock: int
    block: int
    restore: int

    def define(self, module: Module) -> None:
        """Define ``now``."""
        f = Function(module, "now", (), result=I64, internal=True)
        time, clock = f.allocate(I64, 2), f.const(I32, self.clock)
        f.call_value("clock_gettime", I32, clock, time)
        f.finish(f.load(time, I64) * 1_000_000_000 + f.load(f.address(time, 1, I64), I64))

    def prepare(self, sleep: Value) -> None:
        """Initialize the mutex and the condition."""
        f = sleep.function
        null = f.const(PTR, 0)
        f.call_value("pthread_mutex_init", I32, sleep, null)
        f.call_value("pthread_cond_init", I32, f.address(sleep, CONDITION, I8), null)

    def wait(self, sleep: Value, word: Value, number: Value) -> None:
        """Wait for the condition: who changed the word signals it under the mutex."""
        f = sleep.function
        assert isinstance(f, Function)
        f.call_value("pthread_mutex_lock", I32, sleep)
        with f.when(f.compare("==", atomic_load(word), number)):
            f.call_value("pthread_cond_wait", I32, f.address(sleep, CONDITION, I8), sleep)
        f.call_value("pthread_mutex_unlock", I32, sleep)

    def wake(self, sleep: Value, word: Value, count: Value) -> None:
        """Wake all: a thread that waits for another word finds it unchanged."""
        f = sleep.function
        f.call_value("pthread_mutex_lock", I32, sleep)
        f.call_value("pthread_cond_broadcast", I32, f.address(sleep, CONDITION, I8))
        f.call_value("pthread_mutex_unlock", I32, sleep)

    def start(self, f: Function, worker: str, pool: Value, count: Value) -> None:
        """Start threads, with signals blocked: those are for the threads of Python."""
        all_signals, before, thread = (f.allocate(I64, w) for w in (_SIGNAL_WORDS,) * 2 + (1,))
        block, restore = (f.const(I32, how) for how in (self.block, self.restore))
        f.call_value("sigfillset", I32, all_signals)
        f.call_value("pthread_sigmask", I32, block, all_signals, before)
        null, code = f.const(PTR, 0), Value(f, PTR, f"@{worker}")
        with f.loop(0, count):
            failed = f.call_value("pthread_create", I32, thread, null, code, pool)
            with f.when(f.compare("==", failed, 0)):
                f.call_value("pthread_detach", I32, f.load(thread, I64))
        f.call_value("pthread_sigmask", I32, restore, before, null)

    def mark(self, place: Value) -> None:
        """Do nothing: threads are where the system puts them."""

    def begin_worker(self, f: Function) -> Value:
        """Know nothing."""
        return f.const(PTR, 0)

    def leave(self, place: Value, known: Value) -> None:
        """Do nothing."""


DARWIN = Posix(clock=6, block=1, restore=3)
