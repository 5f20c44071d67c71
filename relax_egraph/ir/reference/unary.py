"""Elementwise functions of one operand, without a namespace."""

import math
from collections.abc import Mapping

import numpy as np

from relax_egraph.ir.reference.array import Array, Reference, in_double


def erf_of(x: Array) -> Array:
    """The error function, element by element."""
    flat = np.fromiter(map(math.erf, x.ravel().tolist()), np.float64, x.size)
    return flat.reshape(x.shape)


def _rsqrt(x: Array) -> Array:
    return 1 / np.sqrt(x)


def sigmoid_of(x: Array) -> Array:
    """The logistic function."""
    return 1 / (1 + np.exp(-x))


def _astype(x: Array, *, dtype: str) -> Array:
    return x.astype(dtype)


REFERENCE: Mapping[str, Reference] = {
    "abs": np.abs,
    "negative": np.negative,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": in_double(_rsqrt),
    "tanh": np.tanh,
    "erf": in_double(erf_of),
    "sigmoid": in_double(sigmoid_of),
    "astype": _astype,
}
