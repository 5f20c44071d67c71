"""A worker: a process that runs calls, one at a time, and that a call may bring down.

A call is pickled, its function by name: the process imports the module of the function.  It ends
with its parent (`base.lifeline`).
"""

import os
import pickle
import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from subprocess import PIPE, TimeoutExpired
from tempfile import TemporaryFile
from threading import Timer
from typing import Any, BinaryIO, Literal, TypeVar, cast

from relax_egraph.base.lifeline import TiedProcess
from relax_egraph.errors import RelaxEgraphError
from relax_egraph.workers.main import OUT_OF_MEMORY, RAISED, TOLD
from relax_egraph.workers.pipe import receive, send

T = TypeVar("T")

_ONE_THREAD = {
    name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "RAYON_NUM_THREADS")
}
"""The environment of a process that computes beside others."""

_LAST_WORDS = 4096
"""Bytes of the standard error of a dead process that are read."""

_OVERDRAWN = "by SIGPROF"
"""How a process ends at its limit of processor time."""

_GRACE = 5.0
"""Seconds that a process has to end when it has closed its output."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on a call: `seconds` of time, bytes of `memory` in the address space of its process.

    The time begins when the call tells of progress, if it does so within `start` seconds.
    `processor` bounds the seconds that its process computes, on Unix: unlike the time, they are
    about the same on a busy machine.
    """

    seconds: float
    memory: int | None = None
    start: float | None = None
    processor: float | None = None


@dataclass(frozen=True, slots=True)
class Death:
    """Why a worker died in a call with these `limits`; `last` is what the call told last."""

    cause: Literal["time", "memory", "crash"]
    how: str
    limits: Limits
    last: Any = None

    def __str__(self) -> str:
        match self.cause:
            case "time":
                return f"was ended after {self.reached}"
            case "memory":
                return f"ran out of its {(self.limits.memory or 0) / (1 << 30):.2f} GiB of memory"
            case "crash":
                return f"ended {self.how}"

    @property
    def reached(self) -> str:
        """The limit of time that was reached, in words."""
        if self.how == _OVERDRAWN:
            return f"{self.limits.processor:g} s of processor time"
        return f"{self.limits.seconds:g} s"


class Worker:
    """A worker process; raises `RelaxEgraphError` if none can be started."""

    def __init__(self) -> None:
        path = os.pathsep.join(p or os.getcwd() for p in sys.path)
        # The folder that the user is in is no place to import modules from.
        own = {"PYTHONPATH": path, "PYTHONSAFEPATH": "1", "RUST_BACKTRACE": "0"}
        self._owner = os.getpid()
        self._late = False
        self._stderr = cast(BinaryIO, TemporaryFile(buffering=0))  # noqa: SIM115  until `close`
        try:
            self.process = TiedProcess(
                "from relax_egraph.workers.main import serve; serve()",
                stdin=PIPE,
                stdout=PIPE,
                stderr=self._stderr,
                bufsize=0,
                env={**os.environ, **_ONE_THREAD, **own},
            )
        except OSError as problem:
            self._stderr.close()
            raise RelaxEgraphError(f"no worker process can be started: {problem}") from None
        self.inbox = cast(BinaryIO, self.process.stdin)
        self.outbox = cast(BinaryIO, self.process.stdout)

    @property
    def alive(self) -> bool:
        """Whether it can run a call."""
        return self.process.poll() is None

    def run(self, call: Callable[[], T], limits: Limits) -> T | Death:
        """What `call` returns, or why the process died; raises what it raises.

        Whatever else ends the call, such as an interrupt, ends the process.  Raises ``ValueError``
        if another thread closes it meanwhile.
        """
        request = pickle.dumps((call, limits.memory, limits.processor), protocol=5)
        allowed, last, answer = limits.start or limits.seconds, b"", b""
        try:
            with self._within(allowed):
                send(self.inbox, request)
                message = receive(self.outbox)
            if message[0] == TOLD:
                allowed = limits.seconds
                with self._within(allowed):
                    while message[0] == TOLD:
                        last = message[1:]
                        message = receive(self.outbox)
            answer = message
        except (EOFError, OSError):
            limits = replace(limits, seconds=allowed)
            return self._death(limits, pickle.loads(last) if last else None)
        finally:
            if not answer:
                self.close()
        value = pickle.loads(memoryview(answer)[1:])
        if answer[0] == RAISED:
            raise value
        return value

    @contextmanager
    def _within(self, seconds: float) -> Generator[None]:
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

    def _death(self, limits: Limits, last: object) -> Death:
        try:
            code = self.process.wait(_GRACE)
        except TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with code {code}"
        if self._late or how == _OVERDRAWN:
            return Death("time", how, limits, last)
        self._stderr.seek(max(0, self._stderr.seek(0, os.SEEK_END) - _LAST_WORDS))
        said = self._stderr.read()
        if code == OUT_OF_MEMORY or b"memory allocation of" in said or b"MemoryError" in said:
            return Death("memory", how, limits, last)
        return Death("crash", how, limits, last)

    def close(self) -> None:
        """End the process, and close what is open."""
        if self._owner == os.getpid():
            self.process.kill()
            self.process.wait()
        else:
            self.process.returncode = 0  # a child of the process that this one is a fork of
        for stream in (self.inbox, self.outbox, self._stderr):
            with suppress(OSError):
                stream.close()
