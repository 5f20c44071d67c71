"""The main of a worker process: it runs the calls that it reads, one at a time, and answers each.

It ends when its standard input is closed, whatever it does at that moment.
"""

import os
import pickle
import signal
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from traceback import format_exc
from typing import BinaryIO, NoReturn

from relax_egraph.errors import RelaxEgraphError
from relax_egraph.workers.pipe import receive, send

TOLD, RETURNED, RAISED = b"trx"
"""The first byte of a message: progress, the value of a call, the exception that it raised."""

OUT_OF_MEMORY = 77
"""The exit code where Python has no memory left; a library may abort the process there."""

_SPARE = 1 << 20

_outboxes: list[BinaryIO] = []


def serve() -> NoReturn:
    """Answer calls until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the parent, which ends us
    _outboxes.append(os.fdopen(os.dup(1), "wb", buffering=0))
    os.dup2(2, 1)  # what a call prints is no message
    calls = SimpleQueue[bytes]()
    Thread(target=_receive, args=(calls,), daemon=True).start()
    while True:
        try:
            _run(calls.get())
        except MemoryError:
            os._exit(OUT_OF_MEMORY)


def tell(progress: object) -> None:
    """Tell the parent how far the call is: the `Death` of the process has what was told last."""
    _say(TOLD, progress)


def memory_is_limited() -> bool:
    """Whether the address space of this process is bounded."""
    try:
        import resource  # not on Windows
    except ImportError:
        return False
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def _receive(calls: SimpleQueue[bytes]) -> None:
    inbox = os.fdopen(0, "rb", buffering=0)
    try:
        while True:
            calls.put(receive(inbox))
    finally:  # the parent has closed its end
        os._exit(0)


def _run(message: bytes) -> None:
    call: Callable[[], object]
    memory: int | None
    processor: float | None
    try:
        call, memory, processor = pickle.loads(message)
        _limit_memory(memory)
        _limit_processor(processor)
        _say(RETURNED, call())
    except MemoryError:
        raise
    except Exception as error:
        bytes(_SPARE)  # where no memory is left, exceptions of any kind come of it
        _say(RAISED, _portable(error))
    finally:
        _limit_processor(None)
        _limit_memory(None)


def _say(kind: int, value: object) -> None:
    data = pickle.dumps(value, protocol=5)
    send(_outboxes[0], bytes([kind]) + data)


def _limit_memory(size: int | None) -> None:
    """Bound the address space to `size` bytes, where the platform can."""
    with suppress(ImportError, ValueError, OSError):
        import resource  # not on Windows

        _, most = resource.getrlimit(resource.RLIMIT_AS)
        sizes = [s for s in (size, most) if s not in (None, resource.RLIM_INFINITY)]
        resource.setrlimit(resource.RLIMIT_AS, (min(sizes, default=most), most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def _limit_processor(seconds: float | None) -> None:
    """End this process when it has computed for so long from now on, where the platform can.

    The signal ends it within a function of a library, too, which returns to Python too late.
    """
    if hasattr(signal, "setitimer"):  # not on Windows
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, seconds or 0)


def _portable(error: Exception) -> Exception:
    """`error` with its traceback as a note, if it is none of ours; of a kind that pickles."""
    if not isinstance(error, RelaxEgraphError):
        error.add_note(f"in the worker process:\n{format_exc()}")
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RelaxEgraphError(f"{type(error).__name__}: {error}")
    return error
