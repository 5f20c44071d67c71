"""The process in which rules of users run: ``python -m relax_egraph.egraph.workers.worker``.

It answers requests on its standard input, one at a time, until that is closed.  Its address space
is bounded: egglog aborts the process where there is no memory left.
"""

import os
import pickle
import sys
from traceback import format_exc

from relax_egraph.egraph.rulebook.book import Reading, adopt, reading_of_texts
from relax_egraph.egraph.saturation.course import Told
from relax_egraph.egraph.saturation.in_process import saturate_here
from relax_egraph.egraph.workers.child import OUT_OF_MEMORY, begin, incoming, limit_memory
from relax_egraph.egraph.workers.transfer import (
    Answer,
    Names,
    ReadingRequest,
    Request,
    Rows,
    receive,
    send,
)
from relax_egraph.errors import RelaxEgraphError, SaturationError
from relax_egraph.ir.symbol_ranges import assuming


def main() -> None:
    """Answer requests, with an `Answer` or an exception; before it, tell of each iteration."""
    outbox = begin()
    requests = incoming(_received)
    while True:
        request, names = requests.get()
        try:
            answer = _answer(request, lambda progress: send(outbox, progress, Names()))
            send(outbox, answer, names)
        except MemoryError:
            os._exit(OUT_OF_MEMORY)


def _received() -> tuple[Request | ReadingRequest, Names]:
    names = Names()
    return receive(sys.stdin.buffer, names), names


def _answer(request: Request | ReadingRequest, told: Told) -> Answer | Reading | Exception:
    try:
        if isinstance(request, ReadingRequest):
            return reading_of_texts(request.families, request.user)
        return _saturated(request, told)
    except RelaxEgraphError as error:
        return error
    except MemoryError:
        raise
    except Exception as error:
        return _portable(error)


def _saturated(request: Request, told: Told) -> Answer:
    limited = limit_memory(request.budget.memory)
    if request.reading:
        adopt(request.book, request.reading)
    with assuming(request.assumptions):
        done = saturate_here(
            request.rows.view(),
            request.book,
            request.budget,
            request.schedule,
            request.course,
            told,
        )
    return Answer(Rows.of(done.view), done.report, done.became, limited)


def _portable(error: Exception) -> Exception:
    """`error` with its traceback as a note; of a kind that every process knows."""
    error.add_note(f"in the worker process:\n{format_exc()}")
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return SaturationError(f"{type(error).__name__}: {error}")
    return error


if __name__ == "__main__":
    main()
