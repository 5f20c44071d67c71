"""Reductions over axes."""

import math
from collections.abc import Mapping

import numpy as np

from relax_egraph.ir.reference.array import Array, Axes, Reference, greatest, least


def _sum(x: Array, *, axis: Axes, keepdims: bool) -> Array:
    dtype = np.float64 if x.dtype.kind == "f" else x.dtype
    return np.asarray(np.sum(x, axis=axis, keepdims=keepdims, dtype=dtype)).astype(x.dtype)


def _mean(x: Array, *, axis: Axes, keepdims: bool) -> Array:
    total = np.asarray(np.sum(x, axis=axis, keepdims=keepdims, dtype=np.float64))
    counted = range(x.ndim) if axis is None else axis
    count = np.float64(math.prod(x.shape[a] for a in counted))
    return (total / count).astype(x.dtype)


def _max(x: Array, *, axis: Axes, keepdims: bool) -> Array:
    return np.max(x, axis=axis, keepdims=keepdims, initial=least(x.dtype))


def _min(x: Array, *, axis: Axes, keepdims: bool) -> Array:
    return np.min(x, axis=axis, keepdims=keepdims, initial=greatest(x.dtype))


REFERENCE: Mapping[str, Reference] = {
    "sum": _sum,
    "max": _max,
    "min": _min,
    "mean": _mean,
}
