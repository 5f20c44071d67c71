"""Halves: what an operator computes in float32 within itself stays so when it is optimized.

Constant operands, numbers among them, make rules prefer other forms of an operator.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph import ir
from relax_egraph.ir.dtypes import limits
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.expr import Expr, TupleGetItem

Array = np.ndarray[Any, Any]

HALVES = ("float16", "bfloat16")
MAGNITUDES = (1e-3, 1.0, 80.0, 600.0, 3000.0)
ROWS, CHANNELS, LONG = 2, 8, 1024

OPERATORS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "nn.layer_norm": ("xgg", {"axes": [-1]}),
    "nn.rms_norm": ("xg", {"axes": [-1]}),
    "nn.instance_norm": ("ycc", {"channel_axis": 1, "axes": [2]}),
    "nn.group_norm": ("ycc", {"num_groups": 2, "channel_axis": 1, "axes": [2]}),
    "nn.batch_norm": ("yccmv", {"axis": 1}),
    "nn.softmax": ("x", {"axis": -1}),
    "nn.log_softmax": ("x", {"axis": -1}),
    "nn.attention": ("qqq", {}),
    "mean": ("x", {"axis": [-1]}),
    "variance": ("x", {"axis": [-1]}),
    "std": ("x", {"axis": [-1]}),
    "nn.silu": ("x", {}),
    "nn.gelu": ("x", {}),
}
"""Operators with what they are of: letters of `SHAPES`, the first a parameter."""

SHAPES = {
    **{"x": (ROWS, LONG), "y": (ROWS, CHANNELS, 128), "q": (1, 4, 2, 16)},
    **{"g": (LONG,), "c": (CHANNELS,), "m": (CHANNELS,), "v": (CHANNELS,)},
}


def module_of(name: str, dtype: str, number: bool) -> rx.IRModule:
    """The operator of a parameter and of constants: each of one `number`, or of many."""
    letters, attrs = OPERATORS[name]
    param = ir.Var("x", ir.tensor(SHAPES[letters[0]], dtype))
    bb = ir.BlockBuilder()
    rng = np.random.default_rng(0)
    with bb.function("main", [param]):
        with bb.dataflow():
            operands: list[Expr] = []
            for letter in letters:
                shape = SHAPES[letter]
                if shape == SHAPES[letters[0]]:
                    operands.append(param)
                elif number:
                    two = ir.const(np.asarray(2.0, dtype))
                    operands.append(bb.emit(ir.call("full", ir.shape(shape), two)))
                else:
                    operands.append(ir.const(rng.uniform(0.5, 2, shape).astype(dtype)))
            value = bb.emit(ir.call(name, *operands, **attrs))
            out = TupleGetItem(value, 0) if name == "nn.batch_norm" else value
            result = bb.emit_output(out)
        bb.emit_func_output(result)
    return bb.get()


def inputs_of(name: str, dtype: str) -> list[Array]:
    """Operands of all magnitudes: of either sign, of one sign, and few that are large."""
    shape = SHAPES[OPERATORS[name][0][0]]
    rng = np.random.default_rng(1)
    largest = float(limits(dtype).max)
    found: list[Array] = []
    for size in (*MAGNITUDES, min(largest, 1e30) / 2):
        both = rng.uniform(-1, 1, shape) * size
        few = np.where(rng.random(shape) < 0.005, size, rng.uniform(-1, 1, shape))
        found += [x.astype(dtype) for x in (both, np.abs(both), few)]
    return found


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("number", [False, True])
def test_what_is_optimized_is_as_exact(name: str, dtype: str, number: bool) -> None:
    module = module_of(name, dtype, number)

    best = rx.optimize(module)

    for x in inputs_of(name, dtype):
        want, have = (np.asarray(evaluate(m, "main", x)).astype(np.float64) for m in (module, best))
        unit = float(limits(dtype).eps)
        finite = np.isfinite(want)
        np.testing.assert_array_equal(np.isfinite(have), finite)
        scale = np.max(np.abs(want), initial=0, where=finite)
        np.testing.assert_allclose(have[finite], want[finite], rtol=2 * unit, atol=2 * unit * scale)
