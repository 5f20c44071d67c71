"""The nodes of the graph level, and which of them a program is made of."""

import dataclasses

import pytest

from relax_egraph import IRModule
from relax_egraph.ir import dims
from relax_egraph.ir.block_builder import BlockBuilder, call, call_packed
from relax_egraph.ir.expr import (
    BindingBlock,
    Call,
    DataflowBlock,
    DataflowVar,
    ExternFunc,
    Function,
    MatchCast,
    SeqExpr,
    ShapeExpr,
    Var,
    VarBinding,
)
from relax_egraph.ir.op import OPS
from relax_egraph.ir.struct_info import FuncStructInfo, ObjectStructInfo, ShapeStructInfo, tensor
from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.ir.well_formed import find_ill_formed
from tests.seeds.programs import floats, machines, read

n, m, k = (dims.symbol(name) for name in "nmk")

NODES = {
    ShapeExpr: ["values"],
    Var: ["name", "struct_info"],
    DataflowVar: ["name", "struct_info"],
    VarBinding: ["var", "value"],
    MatchCast: ["var", "value", "struct_info", "span", "refusal"],
    BindingBlock: ["bindings"],
    DataflowBlock: ["bindings"],
    SeqExpr: ["blocks", "body"],
    Function: ["params", "body", "ret_struct_info", "is_pure", "attrs"],
    ExternFunc: ["name"],
}
"""The listing's classes, and what each has here."""


@pytest.mark.parametrize("node", NODES)
def test_the_nodes_have_the_fields_of_the_listing(node: type) -> None:
    assert [f.name for f in dataclasses.fields(node)] == NODES[node]


def test_a_dataflow_variable_is_a_variable() -> None:
    assert issubclass(DataflowVar, Var)


RELAX_FUNC = """
from tvm.script import relax as R

@R.func
def relax_func(x: R.Tensor[(n, k), "f32"], w: R.Tensor[(k, m), "f32"]):
    # start a DataflowBlock
    with R.dataflow(): ## <= DataflowBlock
        lv0: R.Tensor[(n, m), "f32"] = R.dot(x, w) ## <= VarBinding
        gv0: R.Tensor[(n * m,), "f32"] = R.flatten(lv0) ## <= VarBinding
        R.outputs(gv0)

    # start a BindingBlock
    gv1 = R.call_packed("custom_inplace_update", gv0) ## <= side-effect binding
    return gv1
"""


def test_relax_func_prints_in_todays_form() -> None:
    module = read(RELAX_FUNC)

    assert (
        module.script()
        == """\
@I.ir_module
class Module:
    @R.function(pure=False)
    def relax_func(
        x: R.Tensor(("n", "k"), "float32"),
        w: R.Tensor(("k", "m"), "float32"),
    ) -> R.Object:
        n = T.int64()
        k = T.int64()
        m = T.int64()
        with R.dataflow():
            lv0: R.Tensor((n, m), "float32") = R.matmul(x, w)
            gv0: R.Tensor((m * n,), "float32") = R.flatten(lv0)
            R.output(gv0)
        gv1: R.Object = R.call_packed("custom_inplace_update", gv0)
        return gv1
"""
    )


def test_relax_func_is_a_sequence_of_a_dataflow_block_and_a_binding_block() -> None:
    function = read(RELAX_FUNC)["relax_func"]

    assert isinstance(function, Function)
    assert isinstance(function.body, SeqExpr)
    graph, effects = function.body.blocks
    assert isinstance(graph, DataflowBlock)
    assert isinstance(effects, BindingBlock)
    lv0, gv0 = graph.bindings
    (gv1,) = effects.bindings
    assert all(isinstance(b, VarBinding) for b in (lv0, gv0, gv1))
    assert [type(b.var) for b in (lv0, gv0, gv1)] == [DataflowVar, Var, Var]
    assert isinstance(gv1.value, Call)
    assert gv1.value.op is OPS["call_packed"]
    assert gv1.value.args == (ExternFunc("custom_inplace_update"), gv0.var)
    assert function.body.body is gv1.var
    assert not function.is_pure


def test_relax_func_is_what_the_nodes_make_by_hand() -> None:
    x, w = Var("x", tensor((n, k), "float32")), Var("w", tensor((k, m), "float32"))
    product = call("matmul", x, w)
    lv0 = DataflowVar("lv0", product.struct_info)
    flat = call("flatten", lv0)
    gv0 = Var("gv0", flat.struct_info)
    update = call_packed("custom_inplace_update", [gv0], ())
    gv1 = Var("gv1", update.struct_info)

    graph = DataflowBlock((VarBinding(lv0, product), VarBinding(gv0, flat)))
    effects = BindingBlock((VarBinding(gv1, update),))
    function = Function((x, w), SeqExpr((graph, effects), gv1), ObjectStructInfo(), is_pure=False)

    assert_structural_equal(IRModule({"relax_func": function}), read(RELAX_FUNC))


@pytest.mark.parametrize("size", [0, 1, 5])
def test_relax_func_runs_and_returns_what_the_update_returns(size: int) -> None:
    x, w = floats(size, 3), floats(3, 4)
    expected = (x @ w).reshape(-1) + 1

    packed = {"custom_inplace_update": lambda v: v + 1}  # pyright: ignore[reportUnknownLambdaType]
    results = [vm["relax_func"](x, w) for vm in machines(read(RELAX_FUNC), packed)]

    for result in results:
        assert abs(result - expected).max(initial=0) < 1e-5


def test_a_pure_block_takes_no_effects() -> None:
    x = Var("x", tensor((n,), "float32"))
    bb = BlockBuilder()

    with bb.function("main", [x]):
        with bb.dataflow():
            gv = bb.emit_output(call_packed("update", [x], ()))
        bb.emit_func_output(gv)

    assert find_ill_formed(bb.get()) == [
        "main: gv calls R.call_packed, which has side effects: move it out of the dataflow block"
    ]


# --- MatchShape ---------------------------------------------------------------------------


def test_a_match_of_a_shape_gives_a_shape_and_of_a_tensor_a_tensor() -> None:
    function = read("""
@R.function
def main(x: R.Tensor[_, "f32"]):
    shape = R.match_shape(x.shape, [m, n])
    tensor = R.match_shape(x, [m, n])
    return (shape, tensor)
""")["main"]

    assert isinstance(function, Function)
    (block,) = function.body.blocks
    casts = [b for b in block.bindings if isinstance(b, MatchCast)]
    assert [(c.var.name, c.var.struct_info, c.struct_info) for c in casts] == [
        ("shape", ShapeStructInfo((m, n), 2), ShapeStructInfo((m, n), 2)),
        ("tensor", tensor((m, n), "float32"), tensor((m, n), "float32")),
    ]
    assert casts[1].value is function.params[0]


def test_an_extern_function_is_a_function_of_which_nothing_is_known() -> None:
    assert ExternFunc("f").struct_info == FuncStructInfo(None, ObjectStructInfo(), purity=False)


def test_builders_infer_shapes_and_types_as_they_emit() -> None:
    x, w = Var("x", tensor((n, k), "float32")), Var("w", tensor((k, m), "float32"))
    bb = BlockBuilder()

    with bb.function("main", [x, w]):
        with bb.dataflow():
            product = bb.emit(call("matmul", x, w))
            flat = bb.emit_output(call("flatten", product))
        bb.emit_func_output(flat)

    assert product.struct_info == tensor((n, m), "float32")
    assert flat.struct_info == tensor((dims.mul(n, m),), "float32")
