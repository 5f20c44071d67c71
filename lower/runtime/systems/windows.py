"""Threads, clock and sleep of Windows (8 and later)."""

from relax_egraph.lower.emit.emitter import Function
from relax_egraph.lower.emit.instructions import Value
from relax_egraph.lower.emit.module_text import I32, I64, PTR, Module

_SECOND = 1_000_000_000


class Windows:
    """The functions of kernel32 and kernelbase, which every process has loaded."""

    def define(self, module: Module) -> None:
        """Define ``now``: ticks of the performance counter, as nanoseconds."""
        f = Function(module, "now", (), result=I64, internal=True)
        ticks, rate = f.allocate(I64, 1), f.allocate(I64, 1)
        f.call_value("QueryPerformanceCounter", I32, ticks)
        f.call_value("QueryPerformanceFrequency", I32, rate)
        count, per_second = f.load(ticks, I64), f.load(rate, I64)
        seconds = f.binary("udiv", count, per_second)
        rest = (count - seconds * per_second) * _SECOND  # below 2⁶³ for rates below 9 GHz
        f.finish(seconds * _SECOND + f.binary("udiv", rest, per_second))

    def prepare(self, sleep: Value) -> None:
        """Do nothing: a thread waits on the word itself."""

    def wait(self, sleep: Value, word: Value, number: Value) -> None:
        """Wait on the word."""
        f = word.function
        expected = f.allocate(I32, 1)
        f.store(number, expected)
        size, forever = f.const(I64, 4), f.const(I32, -1)
        f.call_value("WaitOnAddress", I32, word, expected, size, forever)

    def wake(self, sleep: Value, word: Value, count: Value) -> None:
        """Wake all threads that wait on the word."""
        word.function.call("WakeByAddressAll", word)

    def start(self, f: Function, worker: str, pool: Value, count: Value) -> None:
        """Start threads."""
        null, code, none = f.const(PTR, 0), Value(f, PTR, f"@{worker}"), f.const(I32, 0)
        with f.loop(0, count):
            default = f.const(I64, 0)
            thread = f.call_value("CreateThread", PTR, null, default, code, pool, none, null)
            with f.when(f.compare("!=", thread, null)):
                f.call_value("CloseHandle", I32, thread)

    def mark(self, place: Value) -> None:
        """Do nothing: threads are where the system puts them."""

    def begin_worker(self, f: Function) -> Value:
        """Know nothing."""
        return f.const(PTR, 0)

    def leave(self, place: Value, known: Value) -> None:
        """Do nothing."""
