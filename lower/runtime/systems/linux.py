"""Threads of Linux: they sleep on a futex, and leave a processor that is busy.

Linux often wakes a thread on the processor of its waker and keeps it there: on an idle machine, two
threads took the time of one until they ended.  So a worker that runs on the caller's processor
leaves it.
"""

from dataclasses import dataclass

from relax_egraph.lower.emit.emitter import Function
from relax_egraph.lower.emit.instructions import Value
from relax_egraph.lower.emit.module_text import I32, I64, PTR, Module
from relax_egraph.lower.runtime.synchronization import atomic_load, atomic_store
from relax_egraph.lower.runtime.systems.posix import Posix

_WAIT, _WAKE = 128, 129
"""The operations of a futex that threads of this process alone use."""

_MASK_WORDS = 16  # glibc's cpu_set_t


@dataclass(frozen=True, slots=True)
class Linux(Posix):
    """`futex` is the number of the system call."""

    futex: int

    def define(self, module: Module) -> None:
        """Define ``now`` and ``leave``."""
        Posix.define(self, module)
        _define_leave(module)

    def prepare(self, sleep: Value) -> None:
        """Do nothing: a futex is the word itself."""

    def wait(self, sleep: Value, word: Value, number: Value) -> None:
        """Wait on the word."""
        self._call(word, _WAIT, number)

    def wake(self, sleep: Value, word: Value, count: Value) -> None:
        """Wake threads that wait on the word."""
        self._call(word, _WAKE, count)

    def mark(self, place: Value) -> None:
        """Note the processor."""
        atomic_store(place.function.call_value("sched_getcpu", I32), place)

    def begin_worker(self, f: Function) -> Value:
        """The processors that the worker may use."""
        allowed = f.allocate(I64, _MASK_WORDS)
        size = f.const(I64, 8 * _MASK_WORDS)
        f.call_value("sched_getaffinity", I32, f.const(I32, 0), size, allowed)
        return allowed

    def leave(self, place: Value, known: Value) -> None:
        """Restrict the thread to the other processors."""
        f = place.function
        assert isinstance(f, Function)
        here = f.call_value("sched_getcpu", I32)
        with f.when(f.compare("==", here, atomic_load(place))):
            f.call("leave", f.convert("zext", here, I64), known)

    def _call(self, word: Value, operation: int, number: Value) -> None:
        f = word.function
        call, what = f.const(I64, self.futex), f.const(I64, operation)
        f.call_value("syscall", I64, call, word, what, number, f.const(PTR, 0))


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
        size = f.const(I64, 8 * _MASK_WORDS)
        f.call_value("sched_setaffinity", I32, f.const(I32, 0), size, mask)
    f.finish()


LINUX = {
    architecture: Linux(clock=1, block=0, restore=2, futex=number)
    for architecture, number in {"x86_64": 202, "aarch64": 98}.items()
}
"""Linux by architecture: the number of a system call depends on it."""
