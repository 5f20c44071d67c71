"""Elementwise functions of two operands and three."""

from collections.abc import Mapping

import numpy as np

from relax_egraph.ir.reference.array import Array, Reference

_WIDER = {np.dtype(np.float32): np.float64, np.dtype(np.float64): np.longdouble}


def _ewise_fma(x: Array, y: Array, z: Array) -> Array:
    wider = _WIDER.get(x.dtype, x.dtype.type)
    return (x.astype(wider) * y + z).astype(x.dtype)


def _ewise_add(x: Array, y: Array) -> Array:
    if x.shape != y.shape:
        raise ValueError("the shapes differ")
    return np.add(x, y)


def _where(condition: Array, x: Array, y: Array) -> Array:
    return np.where(condition, x, y)


REFERENCE: Mapping[str, Reference] = {
    "add": np.add,
    "ewise_add": _ewise_add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "power": np.power,
    "floor_divide": np.floor_divide,
    "floor_mod": np.mod,
    "mod": np.fmod,
    "log_add_exp": np.logaddexp,
    "atan2": np.arctan2,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "greater": np.greater,
    "less": np.less,
    "equal": np.equal,
    "greater_equal": np.greater_equal,
    "less_equal": np.less_equal,
    "not_equal": np.not_equal,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "left_shift": np.left_shift,
    "right_shift": np.right_shift,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
    "ewise_fma": _ewise_fma,
    "where": _where,
}
