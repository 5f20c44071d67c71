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


def _relu6(x: Array) -> Array:
    return np.minimum(np.maximum(x, x.dtype.type(0)), x.dtype.type(6))


def _leakyrelu(x: Array, *, alpha: float) -> Array:
    return np.where(x > 0, x, alpha * x)


def _prelu(x: Array, alpha: Array, *, axis: int) -> Array:
    if alpha.shape != (x.shape[axis],):
        raise ValueError(f"alpha has shape {alpha.shape}, needs ({x.shape[axis]},)")
    slopes = alpha.reshape([-1 if k == axis % x.ndim else 1 for k in range(x.ndim)])
    return np.where(x > 0, x, slopes * x)


SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805
"""The fixed point of mean 0 and variance 1 (Klambauer et al. 2017)."""


def _selu(x: Array) -> Array:
    return SELU_SCALE * np.where(x > 0, x, SELU_ALPHA * np.expm1(x))


def _softplus(x: Array, *, beta: float, threshold: float) -> Array:
    return np.where(beta * x > threshold, x, np.logaddexp(beta * x, 0) / beta)


REFERENCE: Mapping[str, Reference] = {
    "nn.relu": _relu,
    "nn.relu6": _relu6,
    "nn.leakyrelu": in_double(_leakyrelu),
    "nn.prelu": in_double(_prelu),
    "nn.selu": in_double(_selu),
    "nn.softplus": in_double(_softplus),
    "nn.gelu": in_double(_gelu),
    "nn.gelu_tanh": in_double(_gelu_tanh),
    "nn.silu": in_double(_silu),
}
