"""The process in which rules of users run: ``python -m relax_egraph.egraph.worker``.

It answers requests on its standard input, one at a time, until that is closed.  Its address space
is bounded: egglog aborts the process where there is no memory left.
"""

import os
import pickle
import signal
import sys
from queue import SimpleQueue
from threading import Thread
from traceback import format_exc

from relax_egraph.egraph.course import Told
from relax_egraph.egraph.rulebook import adopt
from relax_egraph.egraph.saturation import saturate_here
from relax_egraph.egraph.transfer import Answer, Names, Request, Rows, receive, send
from relax_egraph.errors import RelaxEgraphError, SaturationError
from relax_egraph.ir.symbol_ranges import assuming

OUT_OF_MEMORY = 77
"""The exit code where Python found no memory; egglog aborts."""


def main() -> None:
    """Answer requests, with an `Answer` or an exception; before it, tell of each iteration."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is the parent's, which ends us
    outbox = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what rules print is no message
    requests = SimpleQueue[tuple[Request, Names]]()
    Thread(target=_receive, args=(requests,), daemon=True).start()
    while True:
        request, names = requests.get()
        try:
            answer = _answer(request, lambda progress: send(outbox, progress, Names()))
            send(outbox, answer, names)
        except MemoryError:
            os._exit(OUT_OF_MEMORY)


def _receive(requests: "SimpleQueue[tuple[Request, Names]]") -> None:
    """Queue what comes in; when nothing more can, the parent is gone, whatever we are doing."""
    while True:
        names = Names()
        try:
            requests.put((receive(sys.stdin.buffer, names), names))
        except EOFError:
            os._exit(0)


def _answer(request: Request, told: Told) -> Answer | Exception:
    limited = limit_memory(request.budget.memory)
    if request.reading:
        adopt(request.book, request.reading)
    try:
        with assuming(request.assumptions):
            done = saturate_here(
                request.rows.view(),
                request.book,
                request.budget,
                request.schedule,
                request.course,
                told,
            )
    except RelaxEgraphError as error:
        return error
    except MemoryError:
        raise
    except Exception as error:
        return _portable(error)
    return Answer(Rows.of(done.view), done.report, done.became, limited)


def _portable(error: Exception) -> Exception:
    """`error` with its traceback as a note; of a kind that every process knows."""
    error.add_note(f"in the worker process:\n{format_exc()}")
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return SaturationError(f"{type(error).__name__}: {error}")
    return error


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


if __name__ == "__main__":
    main()
