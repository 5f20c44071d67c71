"""Searches: positions of extremes, places in sorted sequences."""

from collections.abc import Mapping

import numpy as np

from relax_egraph.ir.reference.array import Array, Reference


def _bucketize(input_tensor: Array, boundaries: Array, *, out_int32: bool, right: bool) -> Array:
    if boundaries.ndim != 1:
        raise ValueError("the boundaries are not of rank 1")
    below = np.searchsorted(np.sort(boundaries), input_tensor, side="right" if right else "left")
    return np.asarray(below).astype(np.int32 if out_int32 else np.int64)


REFERENCE: Mapping[str, Reference] = {
    "argmax": np.argmax,
    "argmin": np.argmin,
    "bucketize": _bucketize,
}
