"""What is being done, on a terminal while it is."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)


@contextmanager
def step(doing: str) -> Generator[Callable[[str], None]]:
    """Show `doing` and its seconds where stderr is a terminal, until the block ends.

    What is given changes the text.
    """
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with _terminal(*columns) as progress:
        if progress is None:
            yield lambda _: None
            return
        task = progress.add_task(doing, total=None)
        yield lambda now: progress.update(task, description=now)


@contextmanager
def counted(doing: str, total: int) -> Generator[Callable[[object], None]]:
    """Show a bar likewise: call what is given for each of `total` things that is done."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with _terminal(*columns, TimeElapsedColumn()) as progress:
        if progress is None:
            yield lambda _: None
            return
        task = progress.add_task(doing, total=total)
        yield lambda _: progress.advance(task)


@contextmanager
def _terminal(*columns: ProgressColumn) -> Generator[Progress | None]:
    """What shows progress; ``None`` where stderr is no terminal."""
    console = Console(stderr=True)
    if not (sys.stderr.isatty() and console.is_interactive):
        yield None
        return
    with Progress(*columns, console=console, transient=True) as progress:
        yield progress
