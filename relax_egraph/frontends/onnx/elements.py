"""Tensors of few numbers of which each is known as a dimension: shapes, and arithmetic on them.

Exporters compute shapes by nodes: ``Shape``, ``Gather``, ``Concat``, ``Reshape``.  `folded` does
what such a node does on arrays of dimensions, so that ``(n, 4·n)`` stays known as that.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from relax_egraph.ir.dims import Dim

MOST = 4096
"""Tensors of more elements are not looked into."""

Array: TypeAlias = npt.NDArray[np.object_]


@dataclass(frozen=True, slots=True, eq=False)
class Elements:
    """The elements of a tensor: `array` has its shape, and holds dimensions or negatives of them.

    Of booleans it holds Python's.
    """

    array: Array
    dtype: str

    @property
    def concrete(self) -> npt.NDArray[Any] | None:
        """The numbers, if none depends on a symbol."""
        flat = self.array.reshape(-1).tolist()
        if not all(isinstance(e, int) for e in flat):
            return None
        return np.array(flat, self.dtype).reshape(self.array.shape)

    @property
    def dims(self) -> tuple[Dim, ...]:
        """The elements in row-major order."""
        return tuple(self.array.reshape(-1).tolist())


def of_array(array: npt.NDArray[Any]) -> Elements | None:
    """The elements of a constant, if they are few and whole numbers or booleans."""
    if array.dtype.kind not in "iub" or array.size > MOST:
        return None
    return Elements(array.astype(object), array.dtype.name)


def of_dims(values: Sequence[Dim], shape: tuple[int, ...], dtype: str = "int64") -> Elements:
    """The tensor of `shape` and `dtype` whose elements are `values`, in row-major order."""
    array = np.empty(len(values), object)
    array[:] = values
    return Elements(array.reshape(shape), dtype)
