"""Weights are rewritten at build time only where a run gains by it."""

import numpy as np
import numpy.typing as npt
import pytest

import relax_egraph as rx
from relax_egraph import ir
from relax_egraph.ir.expr import Function
from relax_egraph.ir.walk import constants_of
from tests.support.scheduled import N

SIZE = 256

Array = npt.NDArray[np.float32]


def drawn(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


UP, DOWN = drawn(0, SIZE, SIZE), drawn(1, SIZE, SIZE)
SCALE, SHIFT, BIAS = (drawn(seed, SIZE) for seed in (2, 3, 4))


def products_with_a_norm(*, residual: bool) -> rx.IRModule:
    """``norm(x @ UP) @ DOWN + BIAS``, plus the norm if there is a `residual`."""
    bb = ir.BlockBuilder()
    x = ir.Var("x", ir.tensor((N, SIZE), "float32"))
    scale, shift = ir.const(SCALE), ir.const(SHIFT)
    with bb.function("main", [x]):
        with bb.dataflow():
            product = bb.emit(ir.call("matmul", x, ir.const(UP)))
            norm = bb.emit(ir.call("nn.layer_norm", product, scale, shift, axes=(1,), epsilon=1e-5))
            out = bb.emit(ir.call("matmul", norm, ir.const(DOWN)))
            out = bb.emit(ir.call("add", out, ir.const(BIAS)))
            out = bb.emit_output(ir.call("add", norm, out) if residual else out)
        bb.emit_func_output(out)
    return bb.get()


@pytest.mark.parametrize("residual", [False, True])
def test_the_scale_of_a_norm_is_in_a_weight_unless_the_norm_is_needed_too(residual: bool) -> None:
    module = rx.optimize(products_with_a_norm(residual=residual))

    main = module["main"]
    assert isinstance(main, Function)
    kept = [c.data for c in constants_of(main)]
    assert any(np.array_equal(DOWN, each) for each in kept) == residual
    x = drawn(5, 5, SIZE)
    product = x @ UP
    centred = product - product.mean(1, keepdims=True)
    norm = centred / np.sqrt(product.var(1, keepdims=True) + 1e-5) * SCALE + SHIFT
    expected = norm @ DOWN + BIAS + (norm if residual else 0)
    np.testing.assert_allclose(rx.VirtualMachine(rx.build(module))["main"](x), expected, 2e-3, 2e-3)
