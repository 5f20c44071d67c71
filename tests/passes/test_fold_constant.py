"""Constant folding: before and after, and that the value stays."""

from collections.abc import Callable

import numpy as np
import pytest

from relax_egraph.ir.apply import apply_op
from relax_egraph.ir.block_builder import BlockBuilder, call, call_packed, call_tir
from relax_egraph.ir.dims import symbol
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.expr import (
    Attr,
    Constant,
    Expr,
    Function,
    GlobalVar,
    Tuple,
    TupleGetItem,
    Var,
    const,
    shape,
)
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.op import OPS
from relax_egraph.ir.struct_info import tensor
from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.ir.walk import constants_of
from relax_egraph.ir.well_formed import assert_well_formed
from relax_egraph.passes import PassContext, fold_constant
from relax_egraph.passes.fold_constant import GROWTH_LIMIT, store_broadcasts
from relax_egraph.script import parse

n = symbol("n")
X = Var("x", tensor((n, 2), "float32"))
W = const([[1.0, 2.0], [3.0, 4.0]], "float32")


def main(build: Callable[[BlockBuilder], Expr], *, dataflow: bool = True) -> IRModule:
    """`build` emits into one block and returns the result."""
    bb = BlockBuilder()
    with bb.function("main", [X]):
        if dataflow:
            with bb.dataflow():
                result = build(bb)
        else:
            result = build(bb)
        bb.emit_func_output(result)
    return bb.get()


def folded(before: IRModule) -> IRModule:
    after = fold_constant(before)
    assert_well_formed(after)
    return after


def test_a_chain_of_constants_becomes_one() -> None:
    def before(bb: BlockBuilder) -> Expr:
        a = bb.emit(call("permute_dims", W))
        b = bb.emit(call("add", a, const(1.0)))
        return bb.emit_output(call("matmul", X, b))

    def expected(bb: BlockBuilder) -> Expr:
        return bb.emit_output(call("matmul", X, const([[2.0, 4.0], [3.0, 5.0]], "float32")))

    assert_structural_equal(folded(main(before)), main(expected))


def test_folding_crosses_blocks_and_reaches_the_result() -> None:
    bb = BlockBuilder()
    with bb.function("main", [X]):
        with bb.dataflow():
            a = bb.emit_output(call("exp", const(0.0)))
        b = bb.emit(call("negative", a))
        bb.emit_func_output(Tuple((a, b)))

    after = folded(bb.get())

    expected = BlockBuilder()
    with expected.function("main", [X]):
        expected.emit_func_output(Tuple((const(1.0), const(-1.0))))
    assert_structural_equal(after, expected.get())


def test_integer_shapes_are_operands_and_results() -> None:
    def before(bb: BlockBuilder) -> Expr:
        flat = bb.emit(call("reshape", W, shape([4])))
        size = bb.emit(call("shape_of", flat))
        return bb.emit_output(call("reshape", X, size))

    def expected(bb: BlockBuilder) -> Expr:
        bb.emit(shape([4]))
        return bb.emit_output(call("reshape", X, shape([4])))

    assert_structural_equal(folded(main(before)), main(expected))


LARGE = Constant(np.zeros(GROWTH_LIMIT.default // 4 + 1, np.float32))
"""One element above the limit."""


@pytest.mark.parametrize(
    "value",
    [
        call("add", X, W),
        call("broadcast_to", W, shape([n, 2, 2])),
        call("broadcast_to", const(1.0), shape([2, 2])),
        call("unique", W),
        call_packed("f", [W], [tensor((2,), "float32")], pure=True),
        call_tir(GlobalVar("f"), [W], tensor((2,), "float32")),
        call("matmul", const(np.ones((600, 1), np.float32)), const(np.ones((1, 600), np.float32))),
        call("astype", LARGE, dtype="float64"),
        Tuple((W, W)),
    ],
    ids=lambda v: type(v).__name__,
)
def test_what_is_unknown_or_would_grow_stays(value: Expr) -> None:
    module = main(lambda bb: bb.emit(value), dataflow=False)

    assert fold_constant(module) is module


@pytest.mark.parametrize(
    ("value", "result"),
    [
        (call("broadcast_to", W, shape([2, 2])), W),
        (call("broadcast_to", W, shape([1, 2, 2])), Constant(W.data[None])),
        (call("add", const(1.0), W), Constant(W.data + 1)),
        (call("negative", LARGE), LARGE),
        (call("sum", W), const(10.0)),
        (call("greater", W, const(2.0)), Constant(W.data > 2)),
    ],
    ids=lambda v: type(v).__name__,
)
def test_what_does_not_grow_much_is_computed(value: Expr, result: Constant) -> None:
    module = folded(main(lambda bb: bb.emit(value), dataflow=False))

    function = module["main"]
    assert isinstance(function, Function)
    assert function.body.blocks == ()
    assert isinstance(function.body.body, Constant)
    np.testing.assert_array_equal(function.body.body.data, result.data, strict=True)


def test_a_folded_module_computes_the_same() -> None:
    def build(bb: BlockBuilder) -> Expr:
        scaled = bb.emit(call("nn.softmax", W, axis=0))
        bias = bb.emit(call("mean", scaled, axis=0))
        product = bb.emit(call("matmul", X, scaled))
        return bb.emit_output(call("nn.gelu", bb.emit(call("add", product, bias))))

    module = main(build)
    x = np.random.default_rng(0).standard_normal((5, 2)).astype(np.float32)

    after = folded(module)

    np.testing.assert_array_equal(evaluate(after, "main", x), evaluate(module, "main", x))
    function = after["main"]
    assert isinstance(function, Function)
    assert len(function.body.blocks[0].bindings) == 3


def test_a_field_of_a_tuple_of_constants_is_a_constant() -> None:
    def before(bb: BlockBuilder) -> Expr:
        pair = bb.emit(Tuple((const(2.0), W)), "pair")
        return bb.emit_output(call("multiply", X, bb.emit(TupleGetItem(pair, 1))))

    def expected(bb: BlockBuilder) -> Expr:
        bb.emit(Tuple((const(2.0), W)), "pair")
        return bb.emit_output(call("multiply", X, W))

    assert_structural_equal(folded(main(before)), main(expected))


def test_tuples_of_constants_are_operands_and_results() -> None:
    def before(bb: BlockBuilder) -> Expr:
        pair = bb.emit(Tuple((W, W)), "pair")
        whole = bb.emit(call("concat", pair, axis=0))
        halves = bb.emit(call("split", whole, indices_or_sections=2))
        return bb.emit_output(call("matmul", X, bb.emit(TupleGetItem(halves, 1))))

    def expected(bb: BlockBuilder) -> Expr:
        bb.emit(Tuple((W, W)), "pair")
        bb.emit(Tuple((W, W)), "halves")
        return bb.emit_output(call("matmul", X, W))

    assert_structural_equal(folded(main(before)), main(expected))


def test_tensors_made_of_no_tensor_stay() -> None:
    module = main(lambda bb: bb.emit(call("zeros", shape([2, 2]), dtype="float32")))

    assert fold_constant(module) is module


def test_how_much_larger_a_constant_may_be_is_an_option() -> None:
    column, row = const(np.ones((5, 1), np.float32)), const(np.ones((1, 5), np.float32))
    module = main(lambda bb: bb.emit(call("add", column, row)), dataflow=False)

    with PassContext(config={"fold_constant.growth_limit": 99}):
        assert fold_constant(module) is module
    with PassContext(config={"fold_constant.growth_limit": 100}):
        assert fold_constant(module) is not module


def folded_weight(op: str, *more: Expr, **attrs: Attr) -> tuple[Constant, Constant]:
    """A weight, and what `op` of it and `more` is folded to."""
    weight = const(np.arange(8, dtype=np.float32).reshape(4, 2))

    def before(bb: BlockBuilder) -> Expr:
        return bb.emit_output(call("matmul", X, bb.emit(call(op, weight, *more, **attrs))))

    function = folded(main(before))["main"]
    assert isinstance(function, Function)
    (result,) = constants_of(function)
    return weight, result


def test_a_weight_in_another_order_is_in_memory_once() -> None:
    weight, result = folded_weight("permute_dims")

    np.testing.assert_array_equal(result.data, weight.data.T)
    assert np.shares_memory(result.data, weight.data)


def test_a_part_of_a_weight_keeps_no_more_than_itself() -> None:
    weight, result = folded_weight("strided_slice", shape([1]), shape([3]), axes=(0,))

    np.testing.assert_array_equal(result.data, weight.data[1:3])
    assert not np.shares_memory(result.data, weight.data)


def test_a_result_of_one_operator_is_written_without_its_operand() -> None:
    data = np.ones((2, 2), np.float32)
    turned = apply_op(OPS["permute_dims"], [data], {})
    halves = apply_op(OPS["split"], [data], {"indices_or_sections": 2})

    for result in (turned, *halves):
        assert not np.shares_memory(result, data)


def test_broadcasts_are_stored_where_kernels_are_chosen() -> None:
    before = parse(
        """
@I.ir_module
class Module:
    @R.function(private=True)
    def fused(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        R.func_attr({"primitive": True})
        with R.dataflow():
            lv = R.broadcast_to(R.const(2.0, "float32"), R.shape([2]))
            gv = R.multiply(x, lv)
            R.output(gv)
        return gv

    @R.function
    def main(x: R.Tensor((2,), "float32"), y: R.Tensor(("n",), "float32")):
        n = T.int64()
        cls = Module
        with R.dataflow():
            lv = cls.fused(x)
            lv1 = R.broadcast_to(R.const(1.0, "float32"), R.shape([2]))
            lv2 = R.broadcast_to(R.const(1.0, "float32"), R.shape([n]))
            gv = (lv, lv1, lv2)
            R.output(gv)
        return gv
"""
    )

    after = store_broadcasts(before)

    assert_well_formed(after)
    main_after = after["main"]
    assert isinstance(main_after, Function)
    assert [c.data.tolist() for c in constants_of(main_after)] == [1.0, [1.0, 1.0]]
    assert_structural_equal(after["fused"], before["fused"])
