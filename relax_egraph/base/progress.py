"""Progress of long work where somebody watches it: on a terminal, or below the cell of a notebook.

What is shown disappears when the work ends; elsewhere, such as in a log file, nothing is written.
"""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from html import escape
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress

T = TypeVar("T")

_SOON, _OFTEN = 0.5, 0.2
"""Seconds of work before a notebook shows it, and between two changes of what it shows."""

_is_shown = ContextVar("_is_shown", default=False)


class _Display(Protocol):
    """Where progress is shown: what is done now, and how much of it."""

    def show(self, doing: str, done: int) -> None: ...


@contextmanager
def step(doing: str) -> Generator[Callable[[str], None]]:
    """Show `doing` and the elapsed time until the block ends; the yielded function changes it."""
    with _display(doing, None) as display:
        yield lambda now: display.show(now, 0)


@contextmanager
def counted(doing: str, total: int) -> Generator[Callable[[object], None]]:
    """Show a progress bar; call the yielded function after each of `total` items."""
    done = 0

    def another(_: object) -> None:
        nonlocal done
        done += 1
        display.show(doing, done)

    with _display(doing, total) as display:
        yield another


@contextmanager
def watched(
    progress: Callable[[T], object] | None, doing: str, total: int
) -> Generator[Callable[[T], object]]:
    """The callback `progress` of a caller, or else a progress bar of `total` items."""
    if progress is not None:
        yield progress
        return
    with counted(doing, total) as another:
        yield another


@contextmanager
def _display(doing: str, total: int | None) -> Generator[_Display]:
    """Where progress is shown, with a bar up to `total`; work within work shows nothing more."""
    if _is_shown.get():
        yield _Nowhere()
        return
    before = _is_shown.set(True)
    try:
        if in_notebook():
            with _notebook(total) as line:
                yield line
        elif sys.stderr.isatty():
            with _terminal(doing, total) as bar:
                yield bar
        else:
            yield _Nowhere()
    finally:
        _is_shown.reset(before)


class _Nowhere:
    def show(self, doing: str, done: int) -> None:
        """Nobody watches."""


class _Terminal:
    def __init__(self, progress: "Progress", doing: str, total: int | None) -> None:
        self._progress = progress
        self._task = progress.add_task(doing, total=total)

    def show(self, doing: str, done: int) -> None:
        self._progress.update(self._task, description=doing, completed=done)


@contextmanager
def _terminal(doing: str, total: int | None) -> Generator[_Display]:
    from rich import progress as rich_progress  # 50 ms: loaded at first use
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_interactive:
        yield _Nowhere()
        return
    text = rich_progress.TextColumn("{task.description}")
    seconds = rich_progress.TimeElapsedColumn()
    spinner = (rich_progress.SpinnerColumn(), text, seconds)
    bar = (text, rich_progress.BarColumn(), rich_progress.MofNCompleteColumn(), seconds)
    columns = spinner if total is None else bar
    with rich_progress.Progress(*columns, console=console, transient=True) as progress:
        yield _Terminal(progress, doing, total)


def in_notebook() -> bool:
    """Whether the code runs in the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


class _Line:
    """A line below the cell, of HTML: no widget has to be installed."""

    def __init__(self, total: int | None) -> None:
        self._total = total
        self._begin = monotonic()
        self._shown = self._begin + _SOON - _OFTEN
        self._handle: Any = None

    def show(self, doing: str, done: int) -> None:
        now = monotonic()
        if now < self._shown + _OFTEN or done == self._total:
            return
        self._shown = now
        bar = of = ""
        if self._total is not None:
            bar = f'<progress value="{done}" max="{self._total}"></progress> '
            of = f": {done} of {self._total}"
        self._write(f"{bar}{escape(doing)}{of}, {now - self._begin:.0f} s")

    def clear(self) -> None:
        """Leave nothing of what was shown."""
        if self._handle is not None:
            self._write("")

    def _write(self, html: str) -> None:
        from IPython.display import HTML, display

        if self._handle is None:
            self._handle = display(HTML(html), display_id=True)
        else:
            self._handle.update(HTML(html))


@contextmanager
def _notebook(total: int | None) -> Generator[_Display]:
    line = _Line(total)
    try:
        yield line
    finally:
        line.clear()
