"""Names of processors with vectors of each width, for tests that draw what they compile for."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

from relax_egraph.lower.emit.target import host, this_architecture
from relax_egraph.lower.jit.processors import processor

T = TypeVar("T")

_NARROWER = ("x86-64-v3", "generic") if this_architecture() == "x86_64" else ()

WIDTHS = ("native", *(name for name in _NARROWER if not host().lacks(processor(name))))
"""This processor, and those with vectors of 256 and of 128 bits that it runs the code of."""


def target_of(number: int) -> str:
    """The target of the case `number`: all targets in turn."""
    return WIDTHS[number % len(WIDTHS)]


def dealt(cases: Sequence[T], first: int) -> Iterator[tuple[str, Sequence[T]]]:
    """The `cases` of each target: dealt in turn, the first one to that of the number `first`."""
    for k in range(min(len(cases), len(WIDTHS))):
        yield target_of(first + k), cases[k :: len(WIDTHS)]
