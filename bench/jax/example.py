"""Examples: functions of jax with their inputs."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Shape = tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class Input:
    """An array: its shape, in which a text is a symbolic size, and its dtype.

    Integers are below `most`; `values` are the elements instead.
    """

    shape: Shape
    dtype: str = "float32"
    most: int = 3
    values: Any = None


@dataclass(frozen=True, slots=True)
class Example:
    """A function and its inputs."""

    name: str
    function: Callable[..., Any]
    inputs: tuple[Input, ...] = field(default_factory=tuple[Input, ...])
    relative: float = 1e-4


EXAMPLES: list[Example] = []


def example(*inputs: Input | Shape, relative: float = 1e-4) -> Callable[[Any], Any]:
    """Decorator: the function is an example of that name; an input is one of float32 by default."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        full = tuple(i if isinstance(i, Input) else Input(i) for i in inputs)
        EXAMPLES.append(Example(function.__name__, function, full, relative))
        return function

    return add


def integers(*shape: int | str, most: int = 3, dtype: str = "int32") -> Input:
    """An input of integers below `most`."""
    return Input(shape, dtype, most)


KEY = Input((2,), "uint32", values=(7, 42))
