"""Postponed garbage collection."""

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Generator[None]:
    """Postpone garbage collection while many objects are created that all stay alive.

    One full collection takes as long as the saturation of a layer of a model.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
