"""What is being done, on a terminal while it is."""

import sys
from collections.abc import Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


@contextmanager
def step(doing: str) -> Generator[None]:
    """Show `doing` and its seconds where stderr is a terminal, until the block ends."""
    console = Console(stderr=True)
    if not (sys.stderr.isatty() and console.is_interactive):
        yield
        return
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        progress.add_task(doing, total=None)
        yield
