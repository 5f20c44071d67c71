"""Long work that is interrupted passes on what it has found."""

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import Any, TypeVar

from relax_egraph.errors import Interrupted

T = TypeVar("T")


@contextmanager
def keeping(so_far: Callable[[], tuple[str, Any]]) -> Generator[None]:
    """Have an interruption of the block raise `Interrupted` with what was found `so_far`.

    That is how much it is, in words, and the findings themselves.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(*so_far()) from None


def collected(items: Iterable[T], total: int, done: str) -> tuple[T, ...]:
    """All of `items`, or until an interruption; `done` says in words what is done to each."""
    found: list[T] = []
    with keeping(lambda: (f"{len(found)} of {total} {done}", tuple(found))):
        for item in items:
            found.append(item)
    return tuple(found)
