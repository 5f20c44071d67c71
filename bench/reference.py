"""The meaning of a module in float64: the operators' reference on widened floats."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bench.llama import APPEND
from bench.program import Array, Operators, as_function, in_double, plain, program_of
from relax_egraph.ir.apply import apply_op
from relax_egraph.ir.expr import Attr
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.op import OPS


def _reference(name: str) -> Callable[..., Callable[..., Any]]:
    def chosen(**attrs: Attr) -> Callable[..., Any]:
        return lambda *operands: apply_op(OPS[name], operands, attrs)

    return chosen


def append_row(cache: Array, row: Array) -> Array:
    """Write `row` to the last place of `cache`, along the second last axis, in place."""
    cache[..., -1:, :] = row
    return cache


OPERATORS: Operators = {
    **{name: _reference(name) for name in OPS},
    APPEND: plain(append_row),
}


def exact(module: IRModule, inputs: Sequence[Array]) -> Array:
    """The result of ``main`` on `inputs`, computed in float64 throughout."""
    function = as_function(program_of(module), OPERATORS, in_double)
    return np.asarray(function(*map(in_double, inputs)))


def error_of(result: Array, expected: Array) -> float:
    """The largest difference, relative to the largest expected magnitude.

    It is infinite for a result of another shape, or with a NaN.
    """
    if result.shape != expected.shape or np.isnan(result).any():
        return float("inf")
    return float(np.abs(result.astype(np.float64) - expected).max() / np.abs(expected).max())
