"""What a pool of threads takes of the operating system, as LLVM code.

|         | clock           | threads        | sleep               | processors           |
|---------|-----------------|----------------|---------------------|----------------------|
| linux   | `clock_gettime` | pthreads       | futex               | workers leave a busy |
| darwin  | `clock_gettime` | pthreads       | mutex and condition |                      |
| win32   | a counter       | `CreateThread` | `WaitOnAddress`     |                      |
"""

from collections.abc import Mapping
from typing import Protocol

from relax_egraph.lower.emit.emitter import Function
from relax_egraph.lower.emit.instructions import Value
from relax_egraph.lower.emit.module_text import Module
from relax_egraph.lower.emit.target import Target
from relax_egraph.lower.runtime.systems.linux import LINUX
from relax_egraph.lower.runtime.systems.posix import DARWIN
from relax_egraph.lower.runtime.systems.windows import Windows


class System(Protocol):
    """The code for a system; `pool` is the address of a pool, whose `SLEEP` bytes it may use."""

    def define(self, module: Module) -> None:
        """Define ``i64 now()``, nanoseconds of a monotonic clock, and what else it calls."""
        ...

    def prepare(self, sleep: Value) -> None:
        """Make the `SLEEP` bytes at `sleep` ready, which are zeros."""
        ...

    def wait(self, sleep: Value, word: Value, number: Value) -> None:
        """Sleep while the ``i32`` at `word` is `number`; may return at any time."""
        ...

    def wake(self, sleep: Value, word: Value, count: Value) -> None:
        """Wake up to `count` threads that wait for `word`, which has changed; perhaps others."""
        ...

    def start(self, f: Function, worker: str, pool: Value, count: Value) -> None:
        """Start `count` threads that run `worker(pool)`, as many as there can be."""
        ...

    def mark(self, place: Value) -> None:
        """Note the processor of this thread at `place`."""
        ...

    def begin_worker(self, f: Function) -> Value:
        """What `leave` needs to know of a worker that begins."""
        ...

    def leave(self, place: Value, known: Value) -> None:
        """Move this thread from the processor at `place` to another, if it is there."""
        ...


_SYSTEMS: Mapping[str, System] = {"darwin": DARWIN, "win32": Windows()}


def system_of(target: Target) -> System | None:
    """The code for the system of `target`; ``None`` if there is none."""
    if target.system == "linux":
        return LINUX.get(target.architecture)
    return _SYSTEMS.get(target.system)
