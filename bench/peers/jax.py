"""jax: a module as a function of arrays, compiled by XLA for the shapes of its arguments."""

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from bench.program import (
    Array,
    NotRunnable,
    Operators,
    as_function,
    passing,
    plain,
    program_of,
    uses,
)
from bench.system import Bind, Bound
from relax_egraph.ir.module import IRModule

jax: Any = import_module("jax")  # optional: absent when types are checked


def compiled(module: IRModule, threads: int) -> Bind:
    """`module` under ``jax.jit``; the environment sets the number of `threads` of XLA."""
    if uses(module, "float64"):
        raise NotRunnable("float64 is computed in float32")
    function = as_function(program_of(module), _OPERATORS, jax.numpy.asarray)
    jitted = jax.jit(function)

    def bind(inputs: Sequence[Array]) -> Bound:
        arrays = [jax.device_put(x) for x in inputs]

        def run() -> Any:
            return jitted(*arrays).block_until_ready()

        return Bound(run, lambda: np.array(run()))

    return bind


def _softmax(*, axis: int) -> Callable[[Any], Any]:
    return partial(jax.nn.softmax, axis=axis)


def _layer_norm(*, axes: tuple[int, ...], epsilon: float, **_: object) -> Callable[..., Any]:
    def layer_norm(x: Any, gamma: Any, beta: Any) -> Any:
        mean = x.mean(axes, keepdims=True)
        variance = x.var(axes, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(variance + epsilon) * gamma + beta

    return layer_norm


def _rms_norm(*, axes: tuple[int, ...], epsilon: float) -> Callable[..., Any]:
    def rms_norm(x: Any, weight: Any) -> Any:
        square = jax.numpy.square(x).mean(axes, keepdims=True)
        return x * jax.lax.rsqrt(square + epsilon) * weight

    return rms_norm


def _astype(*, dtype: str) -> Callable[[Any], Any]:
    return lambda x: x.astype(dtype)


def _strided_slice(*, axes: tuple[int, ...], **_: object) -> Callable[..., Any]:
    def strided_slice(x: Any, begin: tuple[int, ...], end: tuple[int, ...]) -> Any:
        for axis, first, behind in zip(axes, begin, end, strict=True):
            x = jax.lax.slice_in_dim(x, first, min(behind, x.shape[axis]), axis=axis)
        return x

    return strided_slice


def _conv2d(
    *,
    strides: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
    **_: object,
) -> Callable[..., Any]:
    def conv2d(x: Any, w: Any) -> Any:
        return jax.lax.conv_general_dilated(
            x,
            w,
            strides,
            _sides(padding),
            rhs_dilation=dilation,
            feature_group_count=groups,
        )

    return conv2d


def _batch_norm(*, epsilon: float, **_: object) -> Callable[..., Any]:
    def batch_norm(x: Any, *parts: Any) -> Any:
        gamma, beta, mean, variance = (p[:, None, None] for p in parts)
        return ((x - mean) * jax.lax.rsqrt(variance + epsilon) * gamma + beta,)

    return batch_norm


def _max_pool2d(
    *, pool_size: tuple[int, ...], strides: tuple[int, ...], padding: tuple[int, ...], **_: object
) -> Callable[[Any], Any]:
    def max_pool2d(x: Any) -> Any:
        window, steps = (1, 1, *pool_size), (1, 1, *strides)
        sides = ((0, 0), (0, 0), *_sides(padding))
        return jax.lax.reduce_window(x, -jax.numpy.inf, jax.lax.max, window, steps, sides)

    return max_pool2d


def _avg_pool2d(
    *,
    pool_size: tuple[int, ...],
    strides: tuple[int, ...],
    padding: tuple[int, ...],
    count_include_pad: bool,
    **_: object,
) -> Callable[[Any], Any]:
    window, steps = (1, 1, *pool_size), (1, 1, *strides)
    sides = ((0, 0), (0, 0), *_sides(padding))
    total = partial(
        jax.lax.reduce_window,
        init_value=0.0,
        computation=jax.lax.add,
        window_dimensions=window,
        window_strides=steps,
        padding=sides,
    )

    def avg_pool2d(x: Any) -> Any:
        whole = pool_size[0] * pool_size[1]
        return total(x) / (whole if count_include_pad else total(jax.numpy.ones(x.shape)))

    return avg_pool2d


def _sides(padding: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """The padding before and after each axis."""
    half = len(padding) // 2 if len(padding) > 2 else 0
    return tuple(zip(padding[: half or None], padding[half:], strict=True))


def _global_mean(*, output_size: tuple[int, ...], **_: object) -> Callable[[Any], Any]:
    if output_size != (1, 1):
        raise NotRunnable(f"output_size {output_size}: needs (1, 1)")
    return lambda x: x.mean((2, 3), keepdims=True)


_OPERATORS: Operators = {
    "add": plain(jax.numpy.add),
    "subtract": plain(jax.numpy.subtract),
    "multiply": plain(jax.numpy.multiply),
    "divide": plain(jax.numpy.divide),
    "power": plain(jax.numpy.power),
    "negative": plain(jax.numpy.negative),
    "sqrt": plain(jax.numpy.sqrt),
    "exp": plain(jax.numpy.exp),
    "erf": plain(jax.lax.erf),
    "tanh": plain(jax.numpy.tanh),
    "sigmoid": plain(jax.nn.sigmoid),
    "where": plain(jax.numpy.where),
    "matmul": plain(jax.numpy.matmul),
    "sum": passing(jax.numpy.sum),
    "max": passing(jax.numpy.max),
    "maximum": plain(jax.numpy.maximum),
    "mean": passing(jax.numpy.mean),
    "astype": _astype,
    "ones": passing(jax.numpy.ones),
    "tril": plain(jax.numpy.tril),
    "concat": passing(jax.numpy.concatenate),
    "reshape": plain(jax.numpy.reshape),
    "expand_dims": passing(jax.numpy.expand_dims),
    "permute_dims": passing(jax.numpy.transpose),
    "broadcast_to": plain(jax.numpy.broadcast_to),
    "strided_slice": _strided_slice,
    "nn.relu": plain(jax.nn.relu),
    "nn.gelu": plain(partial(jax.nn.gelu, approximate=False)),
    "nn.silu": plain(jax.nn.silu),
    "nn.softmax": _softmax,
    "nn.layer_norm": _layer_norm,
    "nn.rms_norm": _rms_norm,
    "nn.conv2d": _conv2d,
    "nn.batch_norm": _batch_norm,
    "nn.max_pool2d": _max_pool2d,
    "nn.avg_pool2d": _avg_pool2d,
    "nn.adaptive_avg_pool2d": _global_mean,
}
