"""Searches: positions of extremes, places in sorted sequences."""

from collections.abc import Mapping

import numpy as np

from relax_egraph.ir.message import no_element
from relax_egraph.ir.reference.array import Array, Reference


def _bucketize(input_tensor: Array, boundaries: Array, *, out_int32: bool, right: bool) -> Array:
    if boundaries.ndim != 1:
        raise ValueError("the boundaries are not of rank 1")
    below = np.searchsorted(np.sort(boundaries), input_tensor, side="right" if right else "left")
    return np.asarray(below).astype(np.int32 if out_int32 else np.int64)


def _position(find: Reference) -> Reference:
    """`find`, of one element or more."""

    def position(x: Array, *, axis: int | None, keepdims: bool) -> Array:
        if x.size == 0 if axis is None else x.shape[axis] == 0:
            raise ValueError(no_element(None if axis is None else (axis,)))
        return find(x, axis=axis, keepdims=keepdims)

    return position


REFERENCE: Mapping[str, Reference] = {
    "argmax": _position(np.argmax),
    "argmin": _position(np.argmin),
    "bucketize": _bucketize,
}
