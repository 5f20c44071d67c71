"""Synchronization of threads: atomic operations, spinning, and sleeping on a Linux futex."""

from collections.abc import Callable

from relax_egraph.lower.emit.emitter import Function
from relax_egraph.lower.emit.instructions import Value
from relax_egraph.lower.emit.module_text import I1, I32, I64, PTR, Module, Type

SPIN = 50_000
"""The nanoseconds for which a waiting thread keeps its processor."""

FUTEX = {"x86_64": 202, "aarch64": 98}
"""The number of the system call of Linux, by machine."""

_RELAX = {"x86_64": "x86.sse2.pause", "aarch64": "aarch64.hint"}

WAIT, WAKE = 128, 129
"""The operations of a futex that threads of this process alone use."""


def spin(f: Function, is_over: Callable[[], Value], machine: str) -> None:
    """Wait until `is_over` or for `SPIN` nanoseconds; the module needs `define_now`."""
    start = f.call_value("now", I64)
    turns = f.allocate(I64, 1)
    f.store(f.const(I64, 0), turns)
    with f.forever() as leave:
        leave(is_over())
        hints = (f.const(I32, 1),) if machine == "aarch64" else ()
        f.call(f"llvm.{_RELAX[machine]}", *hints)
        turn = f.load(turns, I64) + 1
        f.store(turn, turns)
        with f.when(f.compare("==", turn & 63, 0)):
            leave(f.compare(">", f.call_value("now", I64) - start, SPIN))


def define_now(module: Module) -> None:
    """``now()``: nanoseconds of a monotonic clock."""
    f = Function(module, "now", (), result=I64, internal=True)
    time, monotonic = f.allocate(I64, 2), f.const(I32, 1)
    f.call_value("clock_gettime", I32, monotonic, time)
    f.finish(f.load(time, I64) * 1_000_000_000 + f.load(f.address(time, 1, I64), I64))


def futex(word: Value, operation: int, number: Value, machine: str) -> None:
    """`WAIT` while the ``i32`` at `word` is `number`, or `WAKE` up to `number` waiting threads."""
    f = word.function
    call, what = f.const(I64, FUTEX[machine]), f.const(I64, operation)
    f.call_value("syscall", I64, call, word, what, number, f.const(PTR, 0))


def atomic_load(place: Value) -> Value:
    """Load the ``i32`` at `place`; all atomic operations are sequentially consistent."""
    return place.function.emit(I32, f"load atomic i32, {place} seq_cst, align 4")


def atomic_store(value: Value, place: Value) -> None:
    """Store an ``i32``; a thread that loads it sees all earlier writes of this thread."""
    place.function.line(f"store atomic {value}, {place} seq_cst, align 4")


def atomic_add(place: Value, number: int) -> Value:
    """Add to an ``i32``; returns its old value."""
    return place.function.emit(I32, f"atomicrmw add {place}, i32 {number} seq_cst")


def exchange(place: Value, expected: Value, new: Value) -> tuple[Value, Value]:
    """Compare-and-swap: the old value, and whether it was `expected` and `new` was written."""
    f = place.function
    pair = Type(f"{{ {expected.type}, i1 }}")
    both = f.emit(pair, f"cmpxchg {place}, {expected}, {new} seq_cst seq_cst")
    return (
        f.emit(expected.type, f"extractvalue {both}, 0"),
        f.emit(I1, f"extractvalue {both}, 1"),
    )
