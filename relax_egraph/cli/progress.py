"""Progress displays on a terminal."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from rich.progress import Progress


@contextmanager
def step(doing: str) -> Generator[Callable[[str], None]]:
    """Show `doing` and the elapsed time until the block ends, if stderr is a terminal.

    The yielded function changes the text.
    """
    with _terminal("spinner") as progress:
        if progress is None:
            yield lambda _: None
            return
        task = progress.add_task(doing, total=None)
        yield lambda now: progress.update(task, description=now)


@contextmanager
def counted(doing: str, total: int) -> Generator[Callable[[object], None]]:
    """Show a progress bar; call the yielded function after each of `total` items."""
    with _terminal("bar") as progress:
        if progress is None:
            yield lambda _: None
            return
        task = progress.add_task(doing, total=total)
        yield lambda _: progress.advance(task)


@contextmanager
def _terminal(shape: Literal["spinner", "bar"]) -> "Generator[Progress | None]":
    """The progress display; ``None`` if stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich import progress as rich_progress  # 50 ms: loaded at first use
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_interactive:
        yield None
        return
    text, seconds = (
        rich_progress.TextColumn("{task.description}"),
        rich_progress.TimeElapsedColumn(),
    )
    columns = {
        "spinner": (rich_progress.SpinnerColumn(), text, seconds),
        "bar": (text, rich_progress.BarColumn(), rich_progress.MofNCompleteColumn(), seconds),
    }
    with rich_progress.Progress(*columns[shape], console=console, transient=True) as progress:
        yield progress
