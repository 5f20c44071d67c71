"""Garbage collection, put off."""

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Generator[None]:
    """Look for no garbage inside: of what is made in bulk and kept there is none to be found.

    Looking through all objects of a process takes as long as saturating a layer of a model.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
