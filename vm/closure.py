"""Closures: functions with their last arguments bound."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from relax_egraph.ir.message import counted


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Closure:
    """``function(*args, *captured)``; `function` is not a closure itself."""

    function: Callable[..., Any]
    captured: tuple[Any, ...]

    def __repr__(self) -> str:
        bound = counted(len(self.captured), "last argument")
        return f"<closure of {self.function!r}, which binds its {bound}>"

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
