"""A convolution that is a product, and a map of it that reads a gate of each sample."""

import numpy as np

import relax_egraph as rx


def test_a_gate_of_each_sample_is_in_the_kernel_of_the_convolution() -> None:
    module = rx.parse("""
@R.function
def main(
    x: R.Tensor(("n", 2, 2, 96), "float32"),
    w: R.Tensor((128, 96, 1, 1), "float32"),
    y: R.Tensor(("n", 2, 2, 128), "float32"),
    gate: R.Tensor(("n", 1, 1, 128), "float32"),
):
    with R.dataflow():
        conv = R.nn.conv2d(x, w, data_layout="NHWC", kernel_layout="OIHW")
        gated = R.multiply(R.multiply(y, gate), R.const(0.4, "float32"))
        gv = R.add(gated, conv)
        R.output(gv)
    return gv
""")
    random = np.random.default_rng(0)
    x, y = (random.standard_normal((3, 2, 2, c), np.float32) for c in (96, 128))
    w = random.standard_normal((128, 96, 1, 1), np.float32)
    gate = random.standard_normal((3, 1, 1, 128), np.float32)

    result = rx.VirtualMachine(rx.build(rx.optimize(module)))["main"](x, w, y, gate)

    wanted = x @ w[:, :, 0, 0].T + np.float32(0.4) * y * gate
    np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-4)
