"""Tagged values, which evaluation and the machine have in common."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Tagged:
    """A value of an algebraic data type: the number of its constructor, and its fields."""

    tag: int
    fields: tuple[Any, ...]
