"""What every operator means, in numpy: the table that kernels and rules are held to.

Functions that are no single operation of numpy (sums, `sigmoid`, `softmax` …) are computed in
float64 and rounded once to the operand's dtype.  `erf` is Python's `math.erf`, element by
element: numpy has none, and the C library's is accurate to one unit in the last place.
`ewise_fma` of float32 is so exact but for a double rounding; of float64 it rounds twice.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
Axes: TypeAlias = tuple[int, ...] | None


def _in_double(f: Callable[..., Array]) -> Callable[..., Array]:
    """`f` computed of float64 operands, rounded to the first operand's dtype."""

    def rounded(*operands: Array, **attrs: Any) -> Array:
        wide = [o.astype(np.float64) for o in operands]
        return np.asarray(f(*wide, **attrs)).astype(operands[0].dtype)

    return rounded


def _erf(x: Array) -> Array:
    flat = np.fromiter(map(math.erf, x.ravel().tolist()), np.float64, x.size)
    return flat.reshape(x.shape)


def _rsqrt(x: Array) -> Array:
    return 1 / np.sqrt(x)


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _silu(x: Array) -> Array:
    return x * _sigmoid(x)


def _gelu(x: Array) -> Array:
    return x / 2 * (1 + _erf(x / math.sqrt(2)))


def _gelu_tanh(x: Array) -> Array:
    return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def _softmax(x: Array, *, axis: int) -> Array:
    powers = np.exp(x - np.max(x, axis=axis, keepdims=True, initial=-np.inf))
    return powers / np.sum(powers, axis=axis, keepdims=True)


def _ewise_fma(x: Array, y: Array, z: Array) -> Array:
    if x.dtype == np.float32:
        return (x.astype(np.float64) * y + z).astype(np.float32)
    return x * y + z


def _relu(x: Array) -> Array:
    return np.maximum(x, x.dtype.type(0))


def _where(condition: Array, x: Array, y: Array) -> Array:
    return np.where(condition, x, y)


def _astype(x: Array, *, dtype: str) -> Array:
    return x.astype(dtype)


def _sum(x: Array, *, axis: Axes, keepdims: bool) -> Array:
    dtype = np.float64 if x.dtype.kind == "f" else x.dtype
    return np.asarray(np.sum(x, axis=axis, keepdims=keepdims, dtype=dtype)).astype(x.dtype)


def _mean(x: Array, *, axis: Axes, keepdims: bool) -> Array:
    total = np.asarray(np.sum(x, axis=axis, keepdims=keepdims, dtype=np.float64))
    counted = range(x.ndim) if axis is None else axis
    count = np.float64(math.prod(x.shape[a] for a in counted))
    return (total / count).astype(x.dtype)


def least(dtype: np.dtype[Any]) -> Any:
    """The least value of `dtype`, which is the maximum over nothing."""
    if dtype.kind == "f":
        return -np.inf
    return False if dtype.kind == "b" else np.iinfo(dtype).min


def greatest(dtype: np.dtype[Any]) -> Any:
    """The greatest value of `dtype`, which is the minimum over nothing."""
    if dtype.kind == "f":
        return np.inf
    return True if dtype.kind == "b" else np.iinfo(dtype).max


def _max(x: Array, *, axis: Axes, keepdims: bool) -> Array:
    return np.max(x, axis=axis, keepdims=keepdims, initial=least(x.dtype))


def _min(x: Array, *, axis: Axes, keepdims: bool) -> Array:
    return np.min(x, axis=axis, keepdims=keepdims, initial=greatest(x.dtype))


def _permute_dims(x: Array, *, axes: Axes) -> Array:
    return np.transpose(x, axes)


def _reshape(x: Array, shape: tuple[int, ...]) -> Array:
    if any(extent < 0 for extent in shape):  # numpy would fill in a -1
        raise ValueError("negative dimensions are not allowed")
    return x.reshape(shape)


def _broadcast_to(x: Array, shape: tuple[int, ...]) -> Array:
    return np.broadcast_to(x, shape).copy()


def _squeeze(x: Array, *, axis: tuple[int, ...]) -> Array:
    return np.squeeze(x, tuple({a % x.ndim for a in axis}))


def _expand_dims(x: Array, *, axis: tuple[int, ...]) -> Array:
    return np.expand_dims(x, axis)


def _shape_of(x: Array) -> tuple[int, ...]:
    return x.shape


REFERENCE: Mapping[str, Callable[..., Any]] = {
    # elementwise, of one operand
    "abs": np.abs,
    "negative": np.negative,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": _in_double(_rsqrt),
    "tanh": np.tanh,
    "erf": _in_double(_erf),
    "sigmoid": _in_double(_sigmoid),
    "astype": _astype,
    "nn.relu": _relu,
    "nn.gelu": _in_double(_gelu),
    "nn.gelu_tanh": _in_double(_gelu_tanh),
    "nn.silu": _in_double(_silu),
    # elementwise, of more
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
    # along axes
    "sum": _sum,
    "max": _max,
    "min": _min,
    "mean": _mean,
    "nn.softmax": _in_double(_softmax),
    # products
    "matmul": np.matmul,
    # movement
    "permute_dims": _permute_dims,
    "reshape": _reshape,
    "flatten": np.ravel,
    "broadcast_to": _broadcast_to,
    "expand_dims": _expand_dims,
    "squeeze": _squeeze,
    # of shapes that data decide
    "unique": np.unique,
    "shape_of": _shape_of,
}
"""Operands are arrays and shapes (tuples of ints), attributes are complete and by name.

A result may be a view of an operand, or a scalar of numpy; `evaluate.apply_op` makes it an array.
"""
