"""The activations of neural networks: elementwise functions in the namespace ``R.nn``."""

import math
from collections.abc import Mapping

import numpy as np

from relax_egraph.ir.reference.array import Array, Reference, in_double
from relax_egraph.ir.reference.unary import erf_of, sigmoid_of


def _silu(x: Array) -> Array:
    return x * sigmoid_of(x)


def _gelu(x: Array) -> Array:
    return x / 2 * (1 + erf_of(x / math.sqrt(2)))


def _gelu_tanh(x: Array) -> Array:
    return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def _relu(x: Array) -> Array:
    return np.maximum(x, x.dtype.type(0))


REFERENCE: Mapping[str, Reference] = {
    "nn.relu": _relu,
    "nn.gelu": in_double(_gelu),
    "nn.gelu_tanh": in_double(_gelu_tanh),
    "nn.silu": in_double(_silu),
}
