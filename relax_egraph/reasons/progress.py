"""Progress of searches among rules, which optimize one program again and again."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeAlias

from relax_egraph.base.parameters import function, optional
from relax_egraph.base.progress import step

Progress: TypeAlias = Callable[[int, int], object]
"""A callback before each try, with the number of the try and its number of rules."""

PROGRESS = optional(function("a function of two numbers: of the try, and of its rules"))


@contextmanager
def tries(doing: str, progress: Progress | None) -> Generator[Progress]:
    """The callback `progress`, or else one that shows each try where somebody watches."""
    if progress is not None:
        yield progress
        return
    with step(doing) as tell:
        yield lambda number, rules: tell(f"{doing}: try {number}, {rules} rules")
