"""Parts of tensors in axis 0, and what collectives make of them."""

from collections.abc import Mapping

import numpy as np

from relax_egraph.ir.dtypes import is_float, name_of
from relax_egraph.ir.reference.array import Array, Reference


def _shard(x: Array, *, parts: int, axis: int) -> Array:
    return np.stack(np.split(x, parts, axis))


def _replicate(x: Array, *, parts: int) -> Array:
    return np.stack([x] * parts)


def _all_gather(x: Array, *, axis: int) -> Array:
    if not len(x):  # of no part nothing is known but the other extents
        shape = list(x.shape[1:])
        shape[axis] = 0
        return np.zeros(shape, x.dtype)
    return np.concatenate(list(x), axis)


def _all_reduce(x: Array) -> Array:
    dtype = np.float64 if is_float(name_of(x.dtype)) else x.dtype
    return np.asarray(np.sum(x, axis=0, dtype=dtype)).astype(x.dtype)


REFERENCE: Mapping[str, Reference] = {
    "dist.shard": _shard,
    "dist.replicate": _replicate,
    "dist.all_gather": _all_gather,
    "dist.all_reduce": _all_reduce,
}
