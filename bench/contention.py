"""Contention for a core."""

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def busy_core() -> Generator[None]:
    """Keep one core busy with another process, pinned if the system allows it."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        try:
            if hasattr(os, "sched_setaffinity"):
                os.sched_setaffinity(process.pid, {max(os.sched_getaffinity(0))})
            yield
        finally:
            process.kill()
