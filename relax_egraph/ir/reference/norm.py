"""Normalisations: softmax and its kin."""

from collections.abc import Mapping

import numpy as np

from relax_egraph.ir.reference.array import Array, Reference, in_double


def _softmax(x: Array, *, axis: int) -> Array:
    powers = np.exp(x - np.max(x, axis=axis, keepdims=True, initial=-np.inf))
    return powers / np.sum(powers, axis=axis, keepdims=True)


REFERENCE: Mapping[str, Reference] = {
    "nn.softmax": in_double(_softmax),
}
