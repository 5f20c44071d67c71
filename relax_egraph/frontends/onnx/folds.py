"""Folds of shape arithmetic: their type, their operands, the limit of their size."""

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from relax_egraph.frontends.onnx.attributes import Attributes
from relax_egraph.frontends.onnx.elements import MOST, Array, Elements
from relax_egraph.ir.dims import Dim

Operands: TypeAlias = Sequence[Elements | None]
Fold: TypeAlias = Callable[[Operands, Attributes], Array | None]
"""The elements of the result, or ``None`` where they are not known."""

Test: TypeAlias = Callable[[Dim], bool]


def check_size(shape: Sequence[int]) -> None:
    """Raise ``ValueError`` for a tensor too large to be folded, before it is made."""
    if math.prod(shape) > MOST:
        raise ValueError(f"more than {MOST} elements")


def arrays(operands: Operands) -> list[Array]:
    """The elements of the operands that are there."""
    return [o.array for o in operands if o is not None]
