"""Dimensions in braces, for templates of messages: see `ir.templates`."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_BRACED: ContextVar[bool] = ContextVar("braced", default=False)


@contextmanager
def braced() -> Generator[None]:
    """Write dimensions in braces inside, ``{n * 4}``."""
    token = _BRACED.set(True)
    try:
        yield
    finally:
        _BRACED.reset(token)


def is_braced() -> bool:
    """Whether dimensions are written in braces now."""
    return _BRACED.get()
