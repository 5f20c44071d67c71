"""Closures: functions with their last arguments bound."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, eq=False)
class Closure:
    """``function(*args, *captured)``; `function` is not a closure itself."""

    function: Callable[..., Any]
    captured: tuple[Any, ...]

    def __call__(self, *args: Any) -> Any:
        """Call the function with `args` as its first arguments."""
        return self.function(*args, *self.captured)


def closure_of(function: Callable[..., Any], captured: tuple[Any, ...]) -> Callable[..., Any]:
    """`function` with its last arguments bound; for a closure, those before its captured ones."""
    if not captured:
        return function
    if isinstance(function, Closure):
        return Closure(function.function, (*captured, *function.captured))
    return Closure(function, captured)
