"""Packing of matrices to the panels that products read.

It uses numpy, since loops would be compiled for each shape.
"""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from relax_egraph.lower.schedule.packed import LINE, Panels
from relax_egraph.vm.storage import aligned_bytes

Array: TypeAlias = npt.NDArray[Any]


def pack(data: Array, panels: Panels) -> Array:
    """The matrices of `data` as `panels`, aligned for vectors."""
    count, depth, columns, width = panels.count, panels.depth, panels.columns, panels.width
    packed = aligned_bytes(data.itemsize * count * depth * panels.padded).view(data.dtype)
    stored = data.reshape(count, *((columns, depth) if panels.is_transposed else (depth, columns)))
    matrices = stored.swapaxes(1, 2) if panels.is_transposed else stored
    strips = columns // width
    full = strips * width
    places = packed.reshape(count, -1)
    for matrix, place in zip(matrices, places, strict=True):
        _fill(
            place[: full * depth].reshape(strips, depth, width),
            matrix[:, :full].reshape(depth, strips, width).swapaxes(0, 1),
        )
    last = places[:, full * depth :].reshape(count, depth, -1)
    last[:, :, : columns - full] = matrices[:, :, full:]
    last[:, :, columns - full :] = 0
    return packed.reshape(panels.shape)


def _fill(places: Array, strips: Array) -> None:
    """Copy `strips` to `places`.

    Columns that are contiguous are first copied to a buffer with padded rows, since rows at a
    distance of a power of two collide in the cache: that halves the time.
    """
    if strips.strides[2] <= strips.strides[1]:
        places[...] = strips
        return
    _, depth, width = strips.shape
    near = np.empty((width, depth + LINE), strips.dtype)[:, :depth]
    for place, strip in zip(places, strips, strict=True):
        near[...] = strip.T
        place[...] = near.T
