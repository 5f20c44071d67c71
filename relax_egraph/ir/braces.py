"""Dimensions in braces: for texts that are written before their dimensions have values."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_BRACED: ContextVar[bool] = ContextVar("braced", default=False)


@contextmanager
def braced() -> Generator[None]:
    """Within the ``with``, texts have dimensions in braces, ``{n * 4}``: see `ir.templates`."""
    token = _BRACED.set(True)
    try:
        yield
    finally:
        _BRACED.reset(token)


def is_braced() -> bool:
    """Whether this is within `braced`."""
    return _BRACED.get()
