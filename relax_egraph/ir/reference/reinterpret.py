"""Elements taken for elements of another dtype, bit by bit."""

import math
from collections.abc import Mapping

import numpy as np

from relax_egraph.ir.reference.array import Array, Reference


def _reinterpret(
    data: Array, shape: tuple[int, ...], offset: int = 0, *, dtype: str | None
) -> Array:
    wanted = np.dtype(dtype or data.dtype)
    size = math.prod(shape) * wanted.itemsize
    if offset < 0 or offset + size > data.nbytes:
        raise ValueError(f"{size} bytes from byte {offset} of {data.nbytes}")
    read = np.frombuffer(data.tobytes(), np.uint8, size, offset)
    return (read != 0 if wanted == np.bool_ else read.view(wanted)).reshape(shape)


REFERENCE: Mapping[str, Reference] = {"reinterpret": _reinterpret}
