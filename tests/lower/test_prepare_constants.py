"""Loops over constants alone run when a module is built, if they need nothing from a call."""

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.module import BaseFunc
from relax_egraph.lower.pipeline import lower_module
from relax_egraph.tir.rewrite import stores
from relax_egraph.tir.stmt import PrimFunc

BOXES = np.array([[0, 0, 2, 2]], np.float32)
IMAGES = np.array([1], np.int64)

ALIGNED = """
@R.function
def main(x: R.Tensor(("n",), "float32")):
    n = T.int64()
    with R.dataflow():
        wide = R.broadcast_to(R.const(2.0, "float32"), R.shape([2, 1, n, 3]))
        gv = R.image.roi_align(
            wide,
            metadata["relax.expr.Constant"][0],
            metadata["relax.expr.Constant"][1],
            pooled_size=[2, 2],
            spatial_scale=1.0,
            sampling_ratio=1,
            mode="max",
            aligned=False,
        )
        R.output(gv)
    return gv
"""


@pytest.mark.parametrize("size", [1, 2, 5])
def test_loops_over_constants_that_use_an_extent_of_the_call_stay_in_the_call(size: int) -> None:
    module = rx.parse(ALIGNED, constants=[BOXES, IMAGES])
    x = np.zeros(size, np.float32)

    result = rx.VirtualMachine(rx.build(module))["main"](x)

    np.testing.assert_array_equal(result, evaluate(module, "main", x))


CONVOLVED = """
@R.function
def main():
    with R.dataflow():
        gv = R.nn.conv2d(
            metadata["relax.expr.Constant"][0],
            metadata["relax.expr.Constant"][1],
            strides=[2],
            padding={},
        )
        R.output(gv)
    return gv
"""


def stores_into_inputs(function: BaseFunc) -> bool:
    return isinstance(function, PrimFunc) and any(
        store.buffer in function.inputs for store in stores(function.body)
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("padding", [[0, 0, 2, 0], [2, 0, 0, 0], [0, 1, 0, 2], [1], [3, 0, 2, 5]])
@pytest.mark.parametrize(("channels", "features"), [(1, 2), (3, 4)])
def test_what_is_computed_of_constants_is_computed_whole(
    channels: int, features: int, padding: list[int], dtype: str
) -> None:
    """The border of padded data, too: a kernel that filled it would write to a constant."""
    rng = np.random.default_rng(0)
    data, weights = (
        rng.standard_normal(shape).astype(dtype)
        for shape in ((3, channels, 2, 3), (features, channels, 1, 3))
    )
    module = rx.parse(CONVOLVED.format(padding), constants=[data, weights])

    lowered = lower_module(module)
    result = rx.VirtualMachine(rx.build(module))["main"]()

    assert not any(map(stores_into_inputs, lowered.functions.values()))
    np.testing.assert_allclose(result, evaluate(module, "main"), rtol=1e-5)


TWICE = """
@R.function
def main(x: R.Tensor((1, 9, 9, 16), "float32"), v: R.Tensor((3, 3, 16, 16), "float32")):
    with R.dataflow():
        first = R.nn.conv2d(x, v, data_layout="NHWC", kernel_layout="HWIO")
        second = R.nn.conv2d(
            x, metadata["relax.expr.Constant"][0], data_layout="NHWC", kernel_layout="HWIO"
        )
        gv = R.add(first, second)
        R.output(gv)
    return gv
"""


def test_a_weight_is_prepared_where_it_is_constant() -> None:
    rng = np.random.default_rng(0)
    x, v, w = (
        rng.standard_normal(shape).astype(np.float32)
        for shape in ((1, 9, 9, 16), (3, 3, 16, 16), (3, 3, 16, 16))
    )
    module = rx.parse(TWICE, constants=[w])

    lowered = lower_module(module)
    result = rx.VirtualMachine(rx.build(module))["main"](x, v)

    weights = {
        n: f.inputs[1].shape for n, f in lowered.functions.items() if isinstance(f, PrimFunc)
    }
    assert weights["conv2d"] == (3, 3, 16, 16)
    assert weights["conv2d_packed"] == (1, 16, 1, 16, 16)  # by products of the minimal filter
    np.testing.assert_allclose(result, evaluate(module, "main", x, v), rtol=1e-4, atol=1e-4)
