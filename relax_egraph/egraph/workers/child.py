"""A process of our own, which what it does may bring down: egglog cannot be interrupted.

The parent has a `Child`, which runs a module as main; that module begins with `begin`, reads
messages from its standard input, and answers on what `begin` returns.  It ends with its parent.
"""

import os
import pickle
import signal
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from queue import SimpleQueue
from subprocess import PIPE, TimeoutExpired
from tempfile import TemporaryFile
from threading import Thread, Timer
from traceback import print_exc
from typing import BinaryIO, Literal, TypeVar, cast

from relax_egraph.base.lifeline import TiedProcess

T = TypeVar("T")

OUT_OF_MEMORY = 77
"""The exit code where Python found no memory; egglog aborts."""

ONE_THREAD = {
    name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "RAYON_NUM_THREADS")
}
"""What is in the environment of one of several that compute at once."""

_LAST_WORDS = 4096
"""Bytes of the messages of a process that are read when it is dead."""

_GRACE = 5.0
"""Seconds that a process has to end when it has closed its output."""


@dataclass(frozen=True, slots=True)
class End:
    """How a process came to its end: killed as it was `late`, without `memory`, or by `code`."""

    cause: Literal["late", "memory", "code"]
    code: int

    @property
    def what(self) -> str:
        """The signal that ended it, or its exit code."""
        return signal.Signals(-self.code).name if self.code < 0 else f"code {self.code}"

    def __str__(self) -> str:
        return f"{'by' if self.code < 0 else 'with'} {self.what}"


class Child:
    """A process that runs `module`; `environment` is beside ours.

    Raises ``OSError`` if none can be started.
    """

    def __init__(self, module: str, environment: Mapping[str, str] | None = None) -> None:
        path = os.pathsep.join(p or os.getcwd() for p in sys.path)
        # The folder that the user is in is no place to import modules from.
        ours = {"PYTHONPATH": path, "PYTHONSAFEPATH": "1", "RUST_BACKTRACE": "0"}
        self._owner = os.getpid()
        self._late = False
        self._said = cast(BinaryIO, TemporaryFile())  # noqa: SIM115  open as long as the process
        self.process = TiedProcess(
            f"import runpy; runpy.run_module({module!r}, run_name='__main__')",
            stdin=PIPE,
            stdout=PIPE,
            stderr=self._said,
            env={**os.environ, **(environment or {}), **ours},
        )
        self.inbox = cast(BinaryIO, self.process.stdin)
        self.outbox = cast(BinaryIO, self.process.stdout)

    @contextmanager
    def within(self, seconds: float) -> Generator[None]:
        """Kill the process if the block takes longer, which ends what waits for its answer."""
        timer = Timer(seconds, self._expire)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _expire(self) -> None:
        self._late = True
        self.process.kill()

    def ended(self) -> End:
        """How it came to its end, which it has if its output is closed."""
        try:
            code = self.process.wait(_GRACE)
        except TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        if self._late:
            return End("late", code)
        self._said.seek(max(0, self._said.seek(0, os.SEEK_END) - _LAST_WORDS))
        said = self._said.read().decode("utf-8", "replace")
        if code == OUT_OF_MEMORY or "memory allocation of" in said or "MemoryError" in said:
            return End("memory", code)
        return End("code", code)

    def close(self) -> None:
        """End the process, and give back what is open; what waits to be written no one reads."""
        if self._owner == os.getpid():
            self.process.kill()
            self.process.wait()
        else:
            self.process.returncode = 0  # another's child: nothing to wait for
        for stream in (self.inbox, self.outbox, self._said):
            with suppress(OSError):
                stream.close()


def begin() -> BinaryIO:
    """Make this process a child: where it answers; what rules print is no message."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is the parent's, which ends us
    outbox = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return outbox


def incoming(read: Callable[[], T]) -> SimpleQueue[T]:
    """What `read` reads from standard input; at its end, this process ends, whatever it does."""
    messages = SimpleQueue[T]()

    def receive() -> None:
        code = 1
        try:
            while True:
                messages.put(read())
        except (EOFError, pickle.UnpicklingError):  # the end, or the end within a message
            code = 0
        except BaseException:
            print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)

    Thread(target=receive, daemon=True).start()
    return messages


def limit_memory(size: int) -> bool:
    """Bound the address space of this process to `size` bytes, where the platform can."""
    try:
        import resource  # not on Windows

        _, most = resource.getrlimit(resource.RLIMIT_AS)
        bound = size if most == resource.RLIM_INFINITY else min(size, most)
        resource.setrlimit(resource.RLIMIT_AS, (bound, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    except (ImportError, ValueError, OSError):
        return False
    return True
