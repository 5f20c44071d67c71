"""The console for tables."""

from rich.console import Console

_WIDE = 200
"""The width of output that is no terminal, so that tables in files are not cut."""


def console() -> Console:
    """The terminal, or a wide console for other outputs."""
    standard = Console()
    return standard if standard.is_terminal else Console(width=max(standard.width, _WIDE))
