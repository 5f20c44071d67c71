"""What the environment variable ``RELAX_EGRAPH_LOG`` has the package say of its work.

    RELAX_EGRAPH_LOG=info python model.py       # phases with their times, and every detour
    RELAX_EGRAPH_LOG=debug python model.py      # also what is loaded, and what caches have

It goes through `logging`: each module has a logger of its own name, below ``relax_egraph``, so a
program that sets handlers and levels itself needs no variable.
"""

import logging
import os
import sys
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from time import perf_counter

ENVIRONMENT = "RELAX_EGRAPH_LOG"
"""The environment variable of the least level that is shown on standard error."""

LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
"""The levels, by what the variable may be, in letters of any case."""


def show() -> None:
    """Show what the variable asks for on standard error; another value is a ``RuntimeWarning``."""
    value = os.environ.get(ENVIRONMENT, "").strip()
    if not value:
        return
    level = LEVELS.get(value.lower())
    if level is None:
        problem = f"{ENVIRONMENT} is {value!r}; it can be {', '.join(LEVELS)}"
        warnings.warn(problem, RuntimeWarning, stacklevel=2)
        return
    logger, handler = logging.getLogger("relax_egraph"), logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(level)
    logger.propagate = False  # the root's handlers would say it again


@contextmanager
def phase(logger: logging.Logger, name: str, *args: object) -> Generator[None]:
    """Say how long the block took: `name`, a format with its `args`, is what it does."""
    begin = perf_counter()
    yield
    logger.info(f"{name}: %.1f ms", *args, 1e3 * (perf_counter() - begin))
