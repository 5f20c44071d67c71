"""Synchronization of threads: atomic operations, and spinning."""

from collections.abc import Callable

from relax_egraph.lower.emit.emitter import Function
from relax_egraph.lower.emit.instructions import Value
from relax_egraph.lower.emit.module_text import I1, I32, I64, Type

SPIN = 50_000
"""The nanoseconds for which a waiting thread keeps its processor."""

_RELAX = {"x86_64": ("llvm.x86.sse2.pause",), "aarch64": ("llvm.aarch64.hint", 1)}
"""The intrinsic by which a processor waits a moment, and its argument."""


def spin(f: Function, is_over: Callable[[], Value]) -> None:
    """Wait until `is_over` or for `SPIN` nanoseconds; the module defines ``now``."""
    start = f.call_value("now", I64)
    turns = f.allocate(I64, 1)
    f.store(f.const(I64, 0), turns)
    with f.forever() as leave:
        leave(is_over())
        name, *hints = _RELAX[f.module.target.architecture]
        f.call(name, *(f.const(I32, hint) for hint in hints))
        turn = f.load(turns, I64) + 1
        f.store(turn, turns)
        with f.when(f.compare("==", turn & 63, 0)):
            leave(f.compare(">", f.call_value("now", I64) - start, SPIN))


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
