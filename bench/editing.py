"""Milliseconds from an edit of a rule file to its diagnostics, through the language server.

Run from the top of the repository: ``python -m bench.editing``; needs the extra ``lsp``.  An editor
types 200 edits, one after the other; each is timed from the message that it sends to the
diagnostics that come back.  That these are right is tested (``tests/lsp/test_session.py``).
"""

import asyncio
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from tests.support.editor import editing
from tests.support.session import BEGIN, session


async def times() -> list[float]:
    """The milliseconds of each edit."""
    with TemporaryDirectory() as folder:
        async with editing(Path(folder) / "my.egg") as editor:
            await editor.open(BEGIN)
            taken: list[float] = []
            for (start, end, new), _ in session():
                began = time.perf_counter()
                editor.type(start, end, new)
                await editor.diagnostics()
                taken.append(1e3 * (time.perf_counter() - began))
            return taken


def main() -> None:
    """Print the times."""
    taken = asyncio.run(times())
    print(f"{len(taken)} edits: median {median(taken):.1f} ms, worst {max(taken):.1f} ms")


if __name__ == "__main__":
    main()
