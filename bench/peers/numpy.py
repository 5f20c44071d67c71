"""numpy, in the style of its users: one call after the other, in float32."""

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from bench.llama import APPEND
from bench.program import Array, Operators, as_function, passing, plain, program_of
from bench.reference import append_row
from bench.system import Bind, Bound
from relax_egraph.ir.module import IRModule


def compiled(module: IRModule, threads: int) -> Bind:
    """`module` over numpy; the environment sets the `threads` of its BLAS library."""
    function = as_function(program_of(module), _OPERATORS, lambda data: data)

    def bind(inputs: Sequence[Array]) -> Bound:
        run = partial(function, *inputs)
        return Bound(run, run)

    return bind


def _relu(x: Array) -> Array:
    return np.maximum(x, np.float32(0))


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _gelu(x: Array) -> Array:
    return x * np.float32(0.5) * (1 + _erf(x * np.float32(math.sqrt(0.5))))


def _erf(x: Array) -> Array:
    """Abramowitz and Stegun 7.1.26, with an error of 1.5e-7."""
    t = 1 / (1 + np.float32(0.3275911) * np.abs(x))
    p = t * np.float32(1.061405429) - np.float32(1.453152027)
    for c in (1.421413741, -0.284496736, 0.254829592):
        p = p * t + np.float32(c)
    return np.sign(x) * (1 - p * t * np.exp(-x * x))


def _attention(*, scale: float | None, **_: object) -> Callable[..., Array]:
    def attention(query: Array, key: Array, value: Array) -> Array:
        batch, length, heads, size = query.shape
        groups = key.shape[2]
        factor = np.float32(1 / math.sqrt(size) if scale is None else scale)
        rows = query.reshape(batch, length, groups, heads // groups, size)
        rows = rows.transpose(0, 2, 3, 1, 4).reshape(batch, groups, -1, size)
        shares = _softmax(axis=-1)(rows @ key.transpose(0, 2, 3, 1) * factor)
        mixed = (shares @ value.transpose(0, 2, 1, 3)).reshape(batch, heads, length, -1)
        return mixed.transpose(0, 2, 1, 3)

    return attention


def _softmax(*, axis: int) -> Callable[[Array], Array]:
    def softmax(x: Array) -> Array:
        e = np.exp(x - x.max(axis=axis, keepdims=True))
        return e / e.sum(axis=axis, keepdims=True)

    return softmax


def _layer_norm(*, axes: tuple[int, ...], epsilon: float, **_: object) -> Callable[..., Array]:
    def layer_norm(x: Array, gamma: Array, beta: Array) -> Array:
        away = x - x.mean(axis=axes, keepdims=True)
        variance = np.square(away).mean(axis=axes, keepdims=True)
        return away / np.sqrt(variance + np.float32(epsilon)) * gamma + beta

    return layer_norm


def _rms_norm(*, axes: tuple[int, ...], epsilon: float) -> Callable[..., Array]:
    def rms_norm(x: Array, weight: Array) -> Array:
        square = np.square(x).mean(axis=axes, keepdims=True)
        return x / np.sqrt(square + np.float32(epsilon)) * weight

    return rms_norm


def _silu(x: Array) -> Array:
    return x / (1 + np.exp(-x))


def _astype(*, dtype: str) -> Callable[[Array], Array]:
    return lambda x: x.astype(dtype)


def _strided_slice(*, axes: tuple[int, ...], **_: object) -> Callable[..., Array]:
    def strided_slice(x: Array, begin: tuple[int, ...], end: tuple[int, ...]) -> Array:
        parts = [slice(None)] * x.ndim
        for axis, first, behind in zip(axes, begin, end, strict=True):
            parts[axis] = slice(first, behind)
        return x[tuple(parts)]

    return strided_slice


_OPERATORS: Operators = {
    APPEND: plain(append_row),
    "nn.attention": _attention,
    "add": plain(np.add),
    "subtract": plain(np.subtract),
    "multiply": plain(np.multiply),
    "divide": plain(np.divide),
    "power": plain(np.power),
    "negative": plain(np.negative),
    "sqrt": plain(np.sqrt),
    "exp": plain(np.exp),
    "erf": plain(_erf),
    "tanh": plain(np.tanh),
    "sigmoid": plain(_sigmoid),
    "where": plain(np.where),
    "matmul": plain(np.matmul),
    "sum": passing(np.sum),
    "max": passing(np.max),
    "maximum": plain(np.maximum),
    "mean": passing(np.mean),
    "astype": _astype,
    "ones": passing(np.ones),
    "tril": plain(np.tril),
    "concat": passing(np.concatenate),
    "reshape": plain(np.reshape),
    "expand_dims": passing(np.expand_dims),
    "permute_dims": passing(np.transpose),
    "broadcast_to": plain(np.broadcast_to),
    "strided_slice": _strided_slice,
    "nn.relu": plain(_relu),
    "nn.gelu": plain(_gelu),
    "nn.silu": plain(_silu),
    "nn.softmax": _softmax,
    "nn.layer_norm": _layer_norm,
    "nn.rms_norm": _rms_norm,
}
