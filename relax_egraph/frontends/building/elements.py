"""Small tensors whose elements are symbolic dimensions: shapes, and arithmetic on them.

Exporters compute shapes by operations: ``Shape``, ``Gather``, ``Concat``, ``Reshape``.  Front doors
evaluate these on arrays of dimensions, so ``(n, 4·n)`` stays symbolic.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from relax_egraph.ir.dims import Dim

MOST = 4096
"""The most elements of a tensor with symbolic elements."""

Array: TypeAlias = npt.NDArray[np.object_]


@dataclass(frozen=True, slots=True, eq=False)
class Elements:
    """The symbolic elements of a tensor: an array of dimensions or negatives of them.

    Boolean elements are Python bools.
    """

    array: Array
    dtype: str

    @property
    def concrete(self) -> npt.NDArray[Any] | None:
        """The elements as numbers, if none depends on a symbol."""
        flat = self.array.reshape(-1).tolist()
        if not all(isinstance(e, int) for e in flat):
            return None
        return np.array(flat, self.dtype).reshape(self.array.shape)

    @property
    def dims(self) -> tuple[Dim, ...]:
        """The elements in row-major order."""
        return tuple(self.array.reshape(-1).tolist())


def of_array(array: npt.NDArray[Any]) -> Elements | None:
    """The elements of a constant, if they are few integers or booleans."""
    if array.dtype.kind not in "iub" or array.size > MOST:
        return None
    return Elements(array.astype(object), array.dtype.name)


def of_dims(values: Sequence[Dim], shape: tuple[int, ...], dtype: str = "int64") -> Elements:
    """The tensor of `shape` and `dtype` whose elements are `values`, in row-major order."""
    array = np.empty(len(values), object)
    array[:] = values
    return Elements(array.reshape(shape), dtype)
