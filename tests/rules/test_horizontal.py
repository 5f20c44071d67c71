"""Parallel operators of one input become one, and the e-graph stays small."""

from collections.abc import Iterable, Sequence

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph.egraph.view import View
from relax_egraph.ir import IRModule, Var, const, symbol, tensor
from relax_egraph.ir.expr import Constant
from tests.support.viewed import Emit, block, check_equal, nodes, operators_of, saturated, weight

N = symbol("n")
FAMILIES = ("canon", "movement", "shape", "linear", "convolution", "horizontal")


def widths(view: View) -> list[int]:
    """The last extent of every product of matrices."""
    made = [c for c in view.classes.values() if c.sort == "tensor"]
    made = [c for c in made if "matmul" in {node.op for node in c.nodes}]
    return sorted(int((c.struct_info.dims or (0,))[-1]) for c in made)


def projections(count: int, leading: Sequence[object] = (N,)) -> IRModule:
    """``x @ wᵢ + bᵢ`` for `count` weights of different widths."""
    rng = np.random.default_rng(0)
    x = Var("x", tensor((*leading, 6), "float32"))  # pyright: ignore[reportArgumentType]

    def body(emit: Emit) -> Iterable[Var]:
        for k in range(count):
            product = emit("matmul", x, weight(rng, 6, k + 2))
            yield emit("add", product, weight(rng, k + 2))

    return block([x], body)


@pytest.mark.parametrize("count", [2, 3, 4, 8])
def test_parallel_matmuls_become_one_with_one_bias(count: int) -> None:
    view = saturated(projections(count), FAMILIES)

    each = [*range(2, count + 2)]
    assert widths(view) == [*each, sum(each)]
    assert all({"add", "strided_slice"} <= operators_of(view, root) for root in view.roots)
    assert check_equal(view, n=3) >= 2 * count


@pytest.mark.parametrize("leading", [(), (1,), (2, N), (N, 3, 1)])
def test_the_input_may_have_any_leading_axes(leading: tuple[object, ...]) -> None:
    view = saturated(projections(3, leading), FAMILIES)

    assert 9 in widths(view)
    assert check_equal(view, n=2) >= 6
    assert check_equal(view, n=0) >= 6


def test_more_than_sixteen_are_merged_sixteen_at_a_time() -> None:
    view = saturated(projections(20), FAMILIES)

    assert len(nodes(view, "matmul")) == 20 + 2
    assert check_equal(view, n=2) >= 40


def test_weights_may_be_written_transposed() -> None:
    rng = np.random.default_rng(0)
    x = Var("x", tensor((N, 6), "float32"))

    def body(emit: Emit) -> Iterable[Var]:
        for k in (2, 3):
            yield emit("matmul", x, emit("permute_dims", weight(rng, k, 6)))

    view = saturated(block([x], body), FAMILIES)

    assert 5 in widths(view)
    assert check_equal(view, n=3) >= 2


def test_a_scaled_product_is_merged_as_it_was_before_it_was_scaled() -> None:
    rng = np.random.default_rng(0)
    x = Var("x", tensor((N, 6), "float32"))

    def body(emit: Emit) -> Iterable[Var]:
        yield emit("multiply", emit("matmul", x, weight(rng, 6, 2)), const(0.5))
        yield emit("matmul", x, weight(rng, 6, 3))

    view = saturated(block([x], body), FAMILIES)

    assert widths(view)[-1] == 5
    assert check_equal(view, n=3)


def cells(steps: int, gates: int = 8, width: int = 4) -> IRModule:
    """A recurrent net: a step has `gates` gates, each of the input and of the state."""
    rng = np.random.default_rng(0)
    pairs = [(weight(rng, width, width), weight(rng, width, width)) for _ in range(gates)]
    inputs = [Var(f"x{k}", tensor((1, width), "float32")) for k in range(steps)]
    start = Var("h", tensor((1, width), "float32"))

    def body(emit: Emit) -> Iterable[Var]:
        state = start
        for x in inputs:
            parts = [emit("add", emit("matmul", x, w), emit("matmul", state, u)) for w, u in pairs]
            kinds = ("sigmoid", "tanh")
            parts = [emit(kinds[k % 2], part) for k, part in enumerate(parts)]
            while len(parts) > 1:
                parts = [emit("multiply", a, b) for a, b in zip(*[iter(parts)] * 2, strict=True)]
            (state,) = parts
        return [state]

    return block([*inputs, start], body)


def test_the_sixteen_products_of_a_step_become_two() -> None:
    view = saturated(cells(steps=3))

    assert [w for w in widths(view) if w > 4] == [32] * (2 * 3)
    assert check_equal(view) > 50


def test_the_e_graph_grows_linearly_in_steps() -> None:
    sizes = [sum(len(c.nodes) for c in saturated(cells(k)).classes.values()) for k in (2, 4, 6)]

    assert sizes[2] - sizes[1] == sizes[1] - sizes[0]
    assert sizes[2] < 10 * 6 * 24


def fire(layout: str, relu: bool = True) -> IRModule:
    """Two convolutions of one input by kernels of 1 · 1 and 3 · 3, with biases."""
    rng = np.random.default_rng(0)
    first = layout == "NCHW"
    x = Var("x", tensor((N, 3, 5, 5) if first else (N, 5, 5, 3), "float32"))
    kernel_layout = "OIHW" if first else "HWIO"

    def kernel(outs: int, size: int) -> Constant:
        extents = (outs, 3, size, size) if first else (size, size, 3, outs)
        return weight(rng, *extents)

    def body(emit: Emit) -> Iterable[Var]:
        for outs, size in ((2, 1), (4, 3)):
            y = emit(
                *("nn.conv2d", x, kernel(outs, size)),
                padding=(size // 2, size // 2),
                data_layout=layout,
                kernel_layout=kernel_layout,
            )
            y = emit("add", y, weight(rng, *((outs, 1, 1) if first else (outs,))))
            yield emit("nn.relu", y) if relu else y

    return block([x], body)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_a_small_kernel_is_enlarged_and_the_convolutions_merge(layout: str) -> None:
    view = saturated(fire(layout), FAMILIES, fast_math=True)

    whole = (N, 6, 5, 5) if layout == "NCHW" else (N, 5, 5, 6)
    made = {
        op
        for c in view.classes.values()
        if c.struct_info.dims == whole
        for op in {n.op for n in c.nodes}
    }
    assert {"nn.conv2d", "add", "nn.relu"} <= made
    assert all("strided_slice" in operators_of(view, root) for root in view.roots)
    assert check_equal(view, n=2) > 8


TWO_OUTPUTS = """
; eˣ and e⁻ˣ, where both are wanted: the second is the inverse of the first
; float: reassociates
(rule ((= p (R.exp x)) (= q (R.exp (R.negative x))) (= s (shape-of x)) (= d (dtype-of x)))
      ((union q (R.divide (R.broadcast_to (R.const 1.0 d) s) p)))
  :name "exp-of-both-signs")
"""

BOTH_SIGNS = """
@R.function
def main(x: R.Tensor(("n", 4), "float32")):
    with R.dataflow():
        p = R.exp(x)
        m = R.negative(x)
        q = R.exp(m)
        R.output(p, q)
    return (p, q)
"""


def test_a_rule_of_a_user_may_match_two_outputs_at_once() -> None:
    report = rx.explain(rx.parse(BOTH_SIGNS), rules=[TWO_OUTPUTS])
    alone = rx.explain(rx.parse(BOTH_SIGNS.replace("p = R.exp(x)", "p = R.sin(x)")), [TWO_OUTPUTS])

    assert report.rules["exp-of-both-signs"] == 1
    assert "exp-of-both-signs" not in alone.rules
