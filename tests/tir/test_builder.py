"""Tensor expressions emitted into functions of the graph."""

import numpy as np
import pytest

from relax_egraph import BlockBuilder, VirtualMachine, build, te
from relax_egraph.errors import IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.block_builder import call
from relax_egraph.ir.expr import Var, const
from relax_egraph.ir.struct_info import TensorStructInfo, tensor
from relax_egraph.tir.block_builder import te_tensor

n, m = dims.symbol("n"), dims.symbol("m")


def test_a_tensor_expression_over_values_of_the_graph_is_emitted() -> None:
    bb = BlockBuilder()
    x = Var("x", tensor((n, m), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            a = bb.emit(call("add", x, const(1.0)))
            source = te_tensor(a)
            both = te.compute((n, m), lambda i, j: source[i, j] * 2 + te_tensor(x)[i, j], name="B")
            b = bb.emit_output(both)
        bb.emit_func_output(b)

    vm = VirtualMachine(build(bb.get()))

    assert list(bb.get().functions) == ["B", "main"]
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(vm["main"](values), (values + 1) * 2 + values)


def test_a_function_of_tensors_is_called_with_values() -> None:
    def joined(x: te.Tensor, y: te.Tensor, *, factor: float) -> te.Tensor:
        return te.compute(x.shape, lambda i, j: x[i, j] + y[i, j] * factor)

    bb = BlockBuilder()
    x, y = Var("x", tensor((n, 4), "float32")), Var("y", tensor((n, 4), "float32"))
    with bb.function("main", [x, y]):
        with bb.dataflow():
            gv = bb.emit_output(
                bb.call_te(joined, x, bb.emit_te(joined, x, y, factor=3.0), factor=0.5)
            )
        bb.emit_func_output(gv)

    vm = VirtualMachine(build(bb.get()))

    assert [k for k in bb.get().functions] == ["joined", "joined1", "main"]
    a, b = np.full((2, 4), 2, np.float32), np.full((2, 4), 4, np.float32)
    np.testing.assert_array_equal(vm["main"](a, b), np.full((2, 4), 2 + 0.5 * (2 + 3 * 4)))


def test_a_symbol_that_no_extent_has_alone_is_passed_beside_the_tensors() -> None:
    even = dims.mul(2, dims.floordiv(m, 2))
    bb = BlockBuilder()
    y = Var("y", tensor((m,), "float32"))
    x = Var("x", tensor((n, even), "float32"))
    with bb.function("main", [y, x]):
        source = te_tensor(x)
        out = bb.emit(te.compute((n, even), lambda i, j: source[i, j] + 1, name="B"))
        bb.emit_func_output(out)

    text = bb.get().script()
    vm = VirtualMachine(build(bb.get()))

    assert 'out_sinfo=R.Tensor((n, (m // 2) * 2), "float32"), tir_vars=R.shape([m])' in text
    values = np.arange(8, dtype=np.float32).reshape(2, 4)
    np.testing.assert_array_equal(vm["main"](np.zeros(5, np.float32), values), values + 1)


def test_a_reduction_over_an_emitted_value() -> None:
    bb = BlockBuilder()
    x = Var("x", tensor((n, 8), "float32"))
    with bb.function("main", [x]):
        source, k = te_tensor(x), te.reduce_axis(8)
        out = bb.emit(te.compute((n,), lambda i: te.max(source[i, k], axis=k), name="rowmax"))
        bb.emit_func_output(out)

    vm = VirtualMachine(build(bb.get()))

    values = np.random.default_rng(0).normal(size=(5, 8)).astype(np.float32)
    np.testing.assert_array_equal(vm["main"](values), values.max(axis=1))


def test_a_value_of_unknown_shape_is_no_tensor_to_index() -> None:
    x = Var("x", TensorStructInfo(None, "float32", 2))

    with pytest.raises(IllTyped) as refused:
        te_tensor(x)

    assert str(refused.value) == (
        'te_tensor of R.Tensor(dtype="float32", ndim=2): needs a tensor of known shape and dtype'
    )


def test_a_placeholder_of_no_value_cannot_be_emitted() -> None:
    bb = BlockBuilder()
    source = te.placeholder((4,), name="A")

    with bb.function("main", [x := Var("x", tensor((4,), "float32"))]):
        with pytest.raises(IllTyped) as refused:
            bb.emit(te.compute((4,), lambda i: source[i] + 1, name="B"))
        bb.emit_func_output(x)

    assert str(refused.value) == (
        "emit: B reads the placeholder A, which stands for no value of the graph: "
        "make it with te_tensor(value)"
    )
