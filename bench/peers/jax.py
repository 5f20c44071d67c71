"""jax: a module as a function of arrays, compiled by XLA for the shapes it is given."""

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from bench.program import Array, Operators, as_function, plain, program_of
from bench.system import Bind, Bound
from relax_egraph.ir.module import IRModule

jax: Any = import_module("jax")  # it may not be there when types are checked


def compiled(module: IRModule, threads: int) -> Bind:
    """`module` under ``jax.jit``; the environment said how many `threads` XLA has."""
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


_OPERATORS: Operators = {
    "add": plain(jax.numpy.add),
    "multiply": plain(jax.numpy.multiply),
    "matmul": plain(jax.numpy.matmul),
    "tanh": plain(jax.numpy.tanh),
    "sigmoid": plain(jax.nn.sigmoid),
    "nn.relu": plain(jax.nn.relu),
    "nn.gelu": plain(partial(jax.nn.gelu, approximate=False)),
    "nn.softmax": _softmax,
    "nn.layer_norm": _layer_norm,
    "nn.rms_norm": _rms_norm,
}
