"""Quantised weights whose zero point is a vector."""

import numpy as np

import relax_egraph as rx
from relax_egraph.passes.bind_params import bind_params

TEXT = """
@R.function
def main(
    x: R.Tensor((4,), "float32"), q: R.Tensor((), "uint8"), z: R.Tensor((1,), "uint8")
):
    with R.dataflow():
        w = R.dequantize(q, R.const(0.5, "float32"), z)
        gv = R.multiply(x, w)
        R.output(gv)
    return gv
"""


def test_a_number_may_have_a_vector_of_one_zero_point() -> None:
    constants = {"q": np.array(3, "uint8"), "z": np.array([1], "uint8")}
    module = bind_params("main", constants)(rx.parse(TEXT))
    x = np.arange(4, dtype="float32")

    machine = rx.VirtualMachine(rx.build(rx.optimize(module)))

    np.testing.assert_array_equal(machine["main"](x), x * 1.0)
