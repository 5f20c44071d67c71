"""Pairs of modules, the second written with care: optimized, both have the same kernels."""

from typing import Any

import numpy as np

import relax_egraph as rx
from bench.census import census
from relax_egraph.ir import dims
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.struct_info import TensorStructInfo


def arguments(module: rx.IRModule) -> list[np.ndarray[Any, Any]]:
    """Random matrices for the parameters of `main`; the symbol ``n`` is 5."""
    random = np.random.default_rng(0)
    args: list[np.ndarray[Any, Any]] = []
    for param in dict(module.relax_functions())["main"].params:
        assert isinstance(param.struct_info, TensorStructInfo)
        shape = [dims.evaluate(d, {"n": 5}) for d in param.struct_info.dims or ()]
        args.append(random.standard_normal(shape, np.float32))
    return args


def has_kernels_of(
    written: rx.IRModule, careful: rx.IRModule, meaning: rx.IRModule, tolerance: float
) -> None:
    """Assert that `written` has the kernels of `careful`, and computes what `meaning` says."""
    best = rx.optimize(written)

    assert census(best) == census(rx.optimize(careful))
    args = arguments(careful)
    result = rx.VirtualMachine(rx.build(best))["main"](*args)
    expected = evaluate(meaning, "main", *args)
    np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)
