"""Elementwise functions of one operand, without a namespace."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from relax_egraph.ir.dtypes import converted, is_float, name_of
from relax_egraph.ir.reference.array import Array, Reference, greatest, in_double, least


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
    return converted(x, dtype)


def _of_floats(f: Reference) -> Reference:
    """`f` for floats, the identity for integers."""

    def apply(x: Array) -> Array:
        return f(x) if is_float(name_of(x.dtype)) else x

    return apply


def clip_bound(bound: float, dtype: np.dtype[Any]) -> Any:
    """A bound of `clip` as a number of `dtype`, clamped to the range of an integer dtype."""
    if is_float(name_of(dtype)):
        return dtype.type(bound)
    if math.isfinite(bound) and not bound.is_integer():
        raise ValueError(f"a bound is {bound}, needs a whole number")
    low, high = least(dtype), greatest(dtype)
    return dtype.type(low if bound < low else high if bound > high else int(bound))


def _clip(x: Array, *, min: float, max: float) -> Array:
    return np.minimum(np.maximum(x, clip_bound(min, x.dtype)), clip_bound(max, x.dtype))


REFERENCE: Mapping[str, Reference] = {
    "abs": np.abs,
    "negative": np.negative,
    "square": np.square,
    "sign": np.sign,
    "ceil": _of_floats(np.ceil),
    "floor": _of_floats(np.floor),
    "round": _of_floats(np.rint),
    "trunc": _of_floats(np.trunc),
    "clip": _clip,
    "isfinite": np.isfinite,
    "isinf": np.isinf,
    "isnan": np.isnan,
    "bitwise_not": np.invert,
    "logical_not": np.logical_not,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": in_double(_rsqrt),
    "tanh": np.tanh,
    "erf": in_double(erf_of),
    "sigmoid": in_double(sigmoid_of),
    "astype": _astype,
}
