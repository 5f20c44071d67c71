"""Elementwise functions of two operands and three."""

from collections.abc import Mapping

import numpy as np

from relax_egraph.ir.reference.array import Array, Reference


def _ewise_fma(x: Array, y: Array, z: Array) -> Array:
    if x.dtype == np.float32:
        return (x.astype(np.float64) * y + z).astype(np.float32)
    return x * y + z


def _where(condition: Array, x: Array, y: Array) -> Array:
    return np.where(condition, x, y)


REFERENCE: Mapping[str, Reference] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "power": np.power,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "greater": np.greater,
    "less": np.less,
    "equal": np.equal,
    "ewise_fma": _ewise_fma,
    "where": _where,
}
