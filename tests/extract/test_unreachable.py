"""Views by nodes that no plan uses: kernels do not read them."""

import numpy as np

import relax_egraph as rx
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.script import parse
from relax_egraph.vm import VirtualMachine

STACKED = """
@R.function
def main(
    q: R.Tensor((2, 4, 4, 8), "float32"), k: R.Tensor((2, 3, 4, 8), "float32"),
    w: R.Tensor((1, 3, 4, 8), "float32"),
):
    with R.dataflow():
        v = R.broadcast_to(w, R.shape([2, 3, 4, 8]))
        both = R.stack((v, v), axis=1)
        part = R.strided_slice(both, axes=[1], begin=[1], end=[2])
        same = R.reshape(part, R.shape([2, 3, 4, 8]))
        out = R.nn.attention(q, k, same)
        R.output(out)
    return out
"""


def test_a_part_of_a_stack_is_a_broadcast_and_the_stack_is_not_made() -> None:
    module = parse(STACKED)
    rng = np.random.default_rng(0)
    shapes = (2, 4, 4, 8), (2, 3, 4, 8), (1, 3, 4, 8)
    arrays = [rng.standard_normal(s).astype("float32") for s in shapes]

    best = rx.optimize(module)

    assert "R.stack" not in str(best)
    result = VirtualMachine(rx.build(best))["main"](*arrays)
    np.testing.assert_allclose(result, evaluate(module, "main", *arrays), 1e-5, 1e-5)
