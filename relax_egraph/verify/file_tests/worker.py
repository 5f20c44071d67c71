"""The process in which file tests run: ``python -m relax_egraph.verify.file_tests.worker``.

It says that it is ready, then answers each test on its standard input with an outcome, until that
is closed.
"""

import os
import pickle
import sys

from relax_egraph.egraph.workers.child import OUT_OF_MEMORY, begin, incoming, limit_memory
from relax_egraph.verify.file_tests.run import run_test

MEMORY = 2 << 30
"""Bytes of its address space: egglog aborts the process where there is no memory left."""


def main() -> None:
    """Run tests, one at a time."""
    outbox = begin()
    tests = incoming(lambda: pickle.load(sys.stdin.buffer))
    limit_memory(MEMORY)
    answer: object = "ready"
    while True:
        pickle.dump(answer, outbox)
        outbox.flush()
        try:
            answer = run_test(tests.get())
        except MemoryError:
            os._exit(OUT_OF_MEMORY)


if __name__ == "__main__":
    main()
