"""What a layer of an encoder becomes, however it writes its shapes."""

import numpy as np
import pytest

import relax_egraph as rx
from bench.census import Census, census
from bench.transformer import Sizes, encoder

LAYER = {
    "matmul": 4,
    "add": 8,
    "nn.gelu": 1,
    "nn.attention": 1,
    **{"mean": 4, "subtract": 2, "multiply": 4, "rsqrt": 2, "ewise_fma": 2},
    "strided_slice": 3,
    "reshape": 4,
}
"""The products: query, key and value together, the output, and the two dense layers.

The output and the second dense layer have the layer norms in their kernels.
"""


def optimized(layers: int, *, computed_shapes: bool) -> Census:
    return census(rx.optimize(encoder(Sizes(layers, computed_shapes=computed_shapes))))


@pytest.mark.parametrize("computed_shapes", [False, True])
def test_a_layer_is_five_kernels(computed_shapes: bool) -> None:
    shallow, deep = (optimized(n, computed_shapes=computed_shapes) for n in (3, 5))

    layer = deep.per_layer(shallow, 2)

    assert layer.operators == LAYER
    assert layer.kernels.total() == 5


@pytest.mark.parametrize("computed_shapes", [False, True])
def test_an_encoder_computes_the_same_when_it_is_optimized(computed_shapes: bool) -> None:
    module = encoder(Sizes(2, computed_shapes=computed_shapes))
    random = np.random.default_rng(0)
    x = random.standard_normal((2, 5, 64), np.float32)
    mask = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], np.int64)

    before, after = (
        np.asarray(rx.VirtualMachine(rx.build(m))["main"](x, mask))
        for m in (module, rx.optimize(module))
    )

    np.testing.assert_allclose(after, before, rtol=2e-4, atol=2e-5)
