"""How many operations a kernel does, held against counts by hand."""

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph import ir
from relax_egraph.ir import dims
from relax_egraph.lower.work import operations
from relax_egraph.tir.block_builder import BlockBuilder
from relax_egraph.tir.stmt import PrimFunc
from relax_egraph.vm.dim_program import compile_dim

X = 'x: R.Tensor(("n", 8), "float32")'


def module(params: str, *values: str) -> rx.IRModule:
    """``main`` computes ``v0``, ``v1`` … one after the other; the last is its result."""
    lines = "".join(f"            v{k} = {value}\n" for k, value in enumerate(values))
    last = f"v{len(values) - 1}"
    return rx.parse(
        "@I.ir_module\nclass Module:\n    @R.function\n"
        f"    def main({params}):\n        with R.dataflow():\n{lines}"
        f"            R.output({last})\n        return {last}\n"
    )


def work(params: str, *values: str) -> dict[str, str]:
    return dict(rx.build(module(params, *values)).work)


@pytest.mark.parametrize(
    ("params", "value", "expected"),
    [
        (X, "R.add(x, x)", "@0 * 8"),
        (X, "R.exp(x)", "@0 * 8"),
        (X, "R.ewise_fma(x, x, x)", "@0 * 16"),
        (X, "R.greater(x, x)", "@0 * 8"),
        (X, "R.sum(x, axis=[1])", "@0 * 8"),
        # the maximum; subtraction and exponential; their sum; a division
        (X, "R.nn.softmax(x)", "@0 * 40"),
        # what only moves elements: arithmetic is on indices
        (X, "R.permute_dims(x)", "0"),
        (X, "R.nn.pad(x, pad_width=[0, 0, 1, 1])", "0"),
        (X, 'R.astype(x, "float64")', "0"),
        (X, "R.tril(x)", "0"),
        (X + ', i: R.Tensor((5,), "int64")', "R.take(x, i, axis=0)", "0"),
    ],
)
def test_an_operation_on_each_element(params: str, value: str, expected: str) -> None:
    counted = work(params, value)

    assert [*counted.values()][-1] == expected


def test_a_product_is_two_operations_for_each_pair_of_elements() -> None:
    params = 'x: R.Tensor(("m", "k"), "float32"), y: R.Tensor(("k", "n"), "float32")'

    counted = work(params, "R.matmul(x, y)")

    assert counted == {"matmul": "@0 * @1 * @2 * 2"}


def test_a_fused_function_does_what_its_parts_do() -> None:
    params = 'x: R.Tensor(("m", "k"), "float32"), y: R.Tensor(("k", "n"), "float32")'
    fused = rx.optimize(module(params, "R.matmul(x, y)", "R.nn.relu(v0)"))

    counted = dict(rx.build(fused).work)

    (text,) = counted.values()
    m, k, n = 3, 5, 7
    assert compile_dim(text)([m, k, n]) == 2 * m * k * n + m * n


@pytest.mark.parametrize(("batch", "queries", "keys"), [(1, 1, 1), (2, 3, 5)])
def test_attention(batch: int, queries: int, keys: int) -> None:
    heads, size = 2, 8
    params = (
        f'q: R.Tensor(("b", "s", {heads}, {size}), "float32"), '
        f'k: R.Tensor(("b", "t", {heads}, {size}), "float32"), '
        f'v: R.Tensor(("b", "t", {heads}, {size}), "float32")'
    )

    counted = work(params, "R.nn.attention(q, k, v)")

    # a score: a product, scaled twice, maximum, subtraction, exponential, sum, division, a product
    scores = batch * heads * queries * keys
    expected = scores * (2 * size + 2 + 1 + 1 + 1 + 1 + 1 + 2 * size)
    assert compile_dim(counted["attention"])([batch, queries, keys]) == expected


def test_a_convolution() -> None:
    params = 'x: R.Tensor(("n", 3, 8, 8), "float32"), w: R.Tensor((4, 3, 3, 3), "float32")'

    counted = work(params, "R.nn.conv2d(x, w, padding=[1, 1, 1, 1])")

    assert counted == {"conv2d": f"@0 * {2 * 4 * 8 * 8 * 3 * 3 * 3}"}


def test_what_is_packed_when_built_counts_as_it_was_written() -> None:
    x, v = (ir.Var(name, ir.tensor((9, 30), "float32")) for name in "xv")
    w = ir.Var("w", ir.tensor((30, 100), "float32"))
    constant = ir.const(np.ones((30, 100), np.float32))
    bb = BlockBuilder()
    with bb.function("main", [x, v, w]), bb.dataflow():
        first = bb.emit(ir.call("matmul", x, constant))
        second = bb.emit(ir.call("matmul", v, w))
        bb.emit_func_output(bb.emit_output(ir.call("add", first, second)))

    counted = dict(rx.build(bb.get()).work)

    operations_of_one = str(2 * 9 * 30 * 100)
    assert counted == {
        "matmul": operations_of_one,
        "matmul_packed": operations_of_one,
        "add": str(9 * 100),
    }


def test_what_depends_on_elements_is_not_known() -> None:
    counted = work(X, "R.sort(x)")

    assert counted == {}


def test_a_loop_as_long_as_another_is_far_is_not_known() -> None:
    triangle = prim_func(
        """
        for i in range(n):
            for j in range(i):
                with T.block("y"):
                    y[i] = y[i] + x[i]
        """
    )

    assert operations(triangle) is None


def test_a_branch_counts_if_the_other_does_the_same() -> None:
    same = prim_func(
        """
        for i in range(n):
            with T.block("y"):
                v = T.axis.spatial(n, i)
                if v > 3:
                    y[v] = x[v] + x[v]
                else:
                    y[v] = x[v] * x[v]
        """
    )
    other = prim_func(
        """
        for i in range(n):
            with T.block("y"):
                v = T.axis.spatial(n, i)
                if v > 3:
                    y[v] = x[v] + x[v]
                else:
                    y[v] = x[v]
        """
    )

    assert (operations(same), operations(other)) == (dims.symbol("n"), None)


def test_what_comes_before_a_reduction_counts_once() -> None:
    norm = prim_func(
        """
        for i, k in T.grid(n, 4):
            with T.block("y"):
                v_i, v_k = T.axis.remap("SR", [i, k])
                with T.init():
                    y[v_i] = T.exp(x[v_i])
                y[v_i] = y[v_i] + x[v_k]
        """
    )

    assert operations(norm) == dims.mul(5, dims.symbol("n"))


def prim_func(body: str) -> PrimFunc:
    """A loop function from ``x`` to ``y``, both of shape (n,)."""
    head = '    def f(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):'
    text = f"@I.ir_module\nclass Module:\n    @T.prim_func\n{head}{body}"
    function = rx.parse(text)["f"]
    assert isinstance(function, PrimFunc)
    return function
