"""Operators that give the elements another shape or order."""

import math
from collections.abc import Mapping

import numpy as np

from relax_egraph.ir.reference.array import Array, Axes, Reference


def _permute_dims(x: Array, *, axes: Axes) -> Array:
    return np.transpose(x, axes)


def _reshape(x: Array, shape: tuple[int, ...]) -> Array:
    if any(extent < 0 for extent in shape):  # numpy would fill in a -1
        raise ValueError("an extent is negative")
    return x.reshape(shape)


def _broadcast_to(x: Array, shape: tuple[int, ...]) -> Array:
    return np.broadcast_to(x, shape).copy()


def _squeeze(x: Array, *, axis: Axes) -> Array:
    return np.squeeze(x, None if axis is None else tuple({a % x.ndim for a in axis}))


def _batch_flatten(data: Array) -> Array:
    return data.reshape(data.shape[0], math.prod(data.shape[1:]))


def _expand_dims(x: Array, *, axis: tuple[int, ...]) -> Array:
    return np.expand_dims(x, axis)


REFERENCE: Mapping[str, Reference] = {
    "permute_dims": _permute_dims,
    "reshape": _reshape,
    "flatten": np.ravel,
    "broadcast_to": _broadcast_to,
    "expand_dims": _expand_dims,
    "squeeze": _squeeze,
    "nn.batch_flatten": _batch_flatten,
}
