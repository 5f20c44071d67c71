"""Folds of shape arithmetic: their type, their operands."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from relax_egraph.frontends.building.elements import Array, Elements
from relax_egraph.frontends.onnx.attributes import Attributes

Operands: TypeAlias = Sequence[Elements | None]
Fold: TypeAlias = Callable[[Operands, Attributes], Array | None]
"""The elements of the result, or ``None`` where they are not known."""


def arrays(operands: Operands) -> list[Array]:
    """The elements of the operands that are there."""
    return [o.array for o in operands if o is not None]
