"""Permutations that exporters put around operators vanish, but for those that do real work."""

from typing import Any

import numpy as np
import numpy.typing as npt

import relax_egraph as rx
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.expr import Function
from relax_egraph.ir.struct_info import TensorStructInfo

Array = npt.NDArray[Any]

CONVOLUTIONS = """
@R.function
def main(
    x: R.Tensor(("n", 8, 8, 4), "float32"),
    w0: R.Tensor((3, 3, 4, 4), "float32"),
    w1: R.Tensor((3, 3, 4, 4), "float32"),
    b: R.Tensor((4,), "float32"),
    d: R.Tensor((4, 5), "float32"),
):
    with R.dataflow():
        x0 = R.permute_dims(x, axes=[0, 3, 1, 2])
        k0 = R.permute_dims(w0, axes=[3, 2, 0, 1])
        c0 = R.nn.conv2d(x0, k0, padding=[1, 1])
        y0 = R.permute_dims(c0, axes=[0, 2, 3, 1])
        z0 = R.add(y0, b)
        r0 = R.nn.relu(z0)
        x1 = R.permute_dims(r0, axes=[0, 3, 1, 2])
        k1 = R.permute_dims(w1, axes=[3, 2, 0, 1])
        c1 = R.nn.conv2d(x1, k1, padding=[1, 1])
        y1 = R.permute_dims(c1, axes=[0, 2, 3, 1])
        s1 = R.add(y1, x)
        r1 = R.nn.relu(s1)
        x2 = R.permute_dims(r1, axes=[0, 3, 1, 2])
        p2 = R.nn.max_pool2d(x2, pool_size=[2, 2], strides=[2, 2])
        y2 = R.permute_dims(p2, axes=[0, 2, 3, 1])
        m = R.mean(y2, axis=[1, 2])
        gv = R.matmul(m, d)
        R.output(gv)
    return gv
"""

BETWEEN = """
@R.function
def main(x: R.Tensor(("n", "m", 4), "float32"), y: R.Tensor((4, "n", "m"), "float32")):
    with R.dataflow():
        x0 = R.permute_dims(x, axes=[2, 0, 1])
        x1 = R.exp(x0)
        x2 = R.multiply(x1, R.const(0.5))
        x3 = R.nn.softmax(x2, axis=0)
        x4 = R.add(x3, y)
        gv = R.permute_dims(x4, axes=[1, 2, 0])
        R.output(gv)
    return gv
"""

PRODUCTS = """
@R.function
def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor((5, "n"), "float32")):
    with R.dataflow():
        x0 = R.permute_dims(x)
        y0 = R.permute_dims(y)
        p = R.matmul(x0, y0)
        q = R.sigmoid(p)
        gv = R.permute_dims(q)
        R.output(gv)
    return gv
"""

UNPAIRED = """
@R.function
def main(x: R.Tensor(("n", 3, 4), "float32")):
    with R.dataflow():
        x0 = R.permute_dims(x, axes=[1, 2, 0])
        x1 = R.nn.relu(x0)
        gv = R.permute_dims(x1, axes=[1, 0, 2])
        R.output(gv)
    return gv
"""


def permutations_left(text: str) -> int:
    """How many permutations the optimized program of `text` has, after a check of its values."""
    module = rx.parse(text)
    optimized = rx.optimize(module)
    main = module["main"]
    assert isinstance(main, Function)
    rng = np.random.default_rng(0)
    arrays = [
        rng.standard_normal([d if isinstance(d, int) else 3 for d in p.struct_info.dims or ()])
        for p in main.params
        if isinstance(p.struct_info, TensorStructInfo)
    ]
    values = [a.astype(np.float32) for a in arrays]
    expected, found = (evaluate(m, "main", *values) for m in (module, optimized))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    return str(optimized).count("R.permute_dims(")


def test_convolutions_in_the_other_layout_take_it() -> None:
    assert permutations_left(CONVOLUTIONS) == 0


def test_only_the_operand_that_is_in_another_order_is_permuted() -> None:
    assert permutations_left(BETWEEN) == 1


def test_a_product_of_transposed_matrices_is_one_of_the_others() -> None:
    assert permutations_left(PRODUCTS) == 0


def test_two_permutations_that_do_not_cancel_are_one() -> None:
    assert permutations_left(UNPAIRED) == 1
