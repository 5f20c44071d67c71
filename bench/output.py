"""Where tables are printed."""

from rich.console import Console

_WIDE = 200
"""Columns of what is no terminal: a table in a file is not cut."""


def console() -> Console:
    """The terminal, or what output goes to in its place."""
    found = Console()
    return found if found.is_terminal else Console(width=max(found.width, _WIDE))
