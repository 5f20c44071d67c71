"""Loops over constants alone run when a module is built, if they need nothing from a call."""

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph.ir.evaluate import evaluate

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
