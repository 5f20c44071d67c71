"""What is being done, on a terminal while it is."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from rich.progress import Progress


@contextmanager
def step(doing: str) -> Generator[Callable[[str], None]]:
    """Show `doing` and its seconds where stderr is a terminal, until the block ends.

    What is given changes the text.
    """
    with _terminal("spinner") as progress:
        if progress is None:
            yield lambda _: None
            return
        task = progress.add_task(doing, total=None)
        yield lambda now: progress.update(task, description=now)


@contextmanager
def counted(doing: str, total: int) -> Generator[Callable[[object], None]]:
    """Show a bar likewise: call what is given for each of `total` things that is done."""
    with _terminal("bar") as progress:
        if progress is None:
            yield lambda _: None
            return
        task = progress.add_task(doing, total=total)
        yield lambda _: progress.advance(task)


@contextmanager
def _terminal(shape: Literal["spinner", "bar"]) -> "Generator[Progress | None]":
    """What shows progress; ``None`` where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich import progress as shown  # 50 ms: not before it is needed
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_interactive:
        yield None
        return
    text, seconds = shown.TextColumn("{task.description}"), shown.TimeElapsedColumn()
    columns = {
        "spinner": (shown.SpinnerColumn(), text, seconds),
        "bar": (text, shown.BarColumn(), shown.MofNCompleteColumn(), seconds),
    }
    with shown.Progress(*columns[shape], console=console, transient=True) as progress:
        yield progress
