"""A process that does units of a check: ``python -m relax_egraph.verify.worker``.

What it reads from its standard input is the book, the cases and how they are drawn, and then unit
after unit until that is closed.  Its address space is bounded: egglog aborts the process where
there is no memory left.
"""

import os
import pickle
import sys
from traceback import format_exc

from relax_egraph.egraph.rulebook.book import adopt
from relax_egraph.egraph.workers.child import OUT_OF_MEMORY, begin, incoming, limit_memory
from relax_egraph.verify.work import Work

_MEMORY = 4 << 30


def main() -> None:
    """Answer each unit with its verdicts, or with an exception."""
    outbox = begin()
    messages = incoming(lambda: pickle.load(sys.stdin.buffer))
    book, reading, cases, trials, seed = messages.get()
    adopt(book, reading)
    work = Work(book, cases, trials, seed)
    limit_memory(_MEMORY)
    pickle.dump("ready", outbox)
    outbox.flush()
    while True:
        unit = messages.get()
        try:
            answer = pickle.dumps(work.do(unit))
        except MemoryError:
            os._exit(OUT_OF_MEMORY)
        except Exception as error:
            shown = f"{type(error).__name__}: {error}\n{format_exc()}"
            answer = pickle.dumps(RuntimeError(shown))
        outbox.write(answer)
        outbox.flush()


if __name__ == "__main__":
    main()
