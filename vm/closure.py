"""Closures: functions whose last arguments are given."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, eq=False)
class Closure:
    """``function(*args, *captured)``; `function` is itself no closure."""

    function: Callable[..., Any]
    captured: tuple[Any, ...]

    def __call__(self, *args: Any) -> Any:
        """The result for the first arguments."""
        return self.function(*args, *self.captured)


def closure_of(function: Callable[..., Any], captured: tuple[Any, ...]) -> Callable[..., Any]:
    """`function` with its last arguments given; of a closure, those before what it carries."""
    if not captured:
        return function
    if isinstance(function, Closure):
        return Closure(function.function, (*captured, *function.captured))
    return Closure(function, captured)
