"""BlockBuilder: what it emits is in normal form, well-named, and kept only if it is whole."""

import pytest

from relax_egraph.errors import IllFormed, IllTyped
from relax_egraph.ir.block_builder import BlockBuilder, call, call_packed, call_tir
from relax_egraph.ir.dims import symbol
from relax_egraph.ir.expr import (
    BindingBlock,
    Call,
    DataflowBlock,
    DataflowVar,
    Function,
    GlobalVar,
    MatchCast,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
    const,
)
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.struct_info import ObjectStructInfo, TupleStructInfo, tensor
from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.ir.well_formed import assert_well_formed

n = symbol("n")
INFO = tensor((n, 4), "float32")


def a_parameter(name: str = "x") -> Var:
    return Var(name, INFO)


def built(module: IRModule, name: str = "main") -> Function:
    function = module[name]
    assert isinstance(function, Function)
    return function


def names_in(module: IRModule) -> list[str]:
    return [b.var.name for block in built(module).body.blocks for b in block.bindings]


def test_a_function_is_built_block_by_block() -> None:
    bb, x = BlockBuilder(), a_parameter()
    with bb.function("main", [x], {"primitive": True}):
        before = bb.emit(call("nn.relu", x))
        with bb.dataflow():
            inside = bb.emit(call("exp", before))
            out = bb.emit_output(call("log", inside))
        bb.emit_func_output(out)

    module = bb.get()

    relu, exp, log = call("nn.relu", x), call("exp", before), call("log", inside)
    expected = Function(
        (x,),
        SeqExpr(
            (
                BindingBlock((VarBinding(before, relu),)),
                DataflowBlock((VarBinding(inside, exp), VarBinding(out, log))),
            ),
            out,
        ),
        INFO,
        attrs={"primitive": True},
    )
    assert_structural_equal(module, IRModule({"main": expected}))
    assert_well_formed(module)


def test_names_are_unique_in_a_function_and_start_anew_in_the_next() -> None:
    bb = BlockBuilder()
    for name in ("main", "other"):
        x = a_parameter("lv")
        with bb.function(name, [x]):
            with bb.dataflow():
                a = bb.emit(call("exp", x))
                b = bb.emit(call("exp", a), "lv1")
                c = bb.emit(call("exp", b), "y")
                d = bb.emit_output(call("exp", c))
            bb.emit_func_output(d)

    assert names_in(bb.get()) == ["lv1", "lv11", "y", "gv"]
    assert [b.var.name for b in built(bb.get(), "other").body.blocks[0].bindings] == [
        "lv1",
        "lv11",
        "y",
        "gv",
    ]


def test_variables_are_local_to_dataflow_unless_they_are_output() -> None:
    bb, x = BlockBuilder(), a_parameter()
    with bb.function("main", [x]):
        with bb.dataflow():
            lv = bb.emit(call("exp", x))
            gv = bb.emit_output(call("exp", lv))
        after = bb.emit(call("exp", gv))
        bb.emit_func_output(after)

    assert [type(v) for v in (lv, gv, after)] == [DataflowVar, Var, Var]


def test_nested_calls_are_bound_from_the_inside() -> None:
    bb, x = BlockBuilder(), a_parameter()
    with bb.function("main", [x]):
        bb.emit_func_output(call("add", call("exp", x), Call(call("log", x).op, (x,))))

    module = bb.get()

    assert names_in(module) == ["gv", "gv1", "gv2"]
    assert_well_formed(module)
    assert built(module).ret_struct_info == INFO


def test_what_is_nested_in_tuples_is_bound() -> None:
    bb, x = BlockBuilder(), a_parameter()
    with bb.function("main", [x]):
        pair = bb.emit(Tuple((call("exp", x), Tuple((x, call("log", x))))))
        bb.emit_func_output(TupleGetItem(TupleGetItem(pair, 1), 1))

    module = bb.get()

    assert pair.struct_info == TupleStructInfo((INFO, TupleStructInfo((INFO, INFO))))
    assert names_in(module) == ["gv", "gv1", "gv2", "gv3", "gv4"]
    assert_well_formed(module)


def test_match_cast_gives_its_variable_what_it_claims() -> None:
    bb, x = BlockBuilder(), Var("x", ObjectStructInfo())
    with bb.function("main", [x]):
        y = bb.emit_match_cast(x, INFO, "y")
        bb.emit_func_output(y)

    module = bb.get()

    block = built(module).body.blocks[0]
    assert isinstance(block.bindings[0], MatchCast)
    assert y.struct_info == INFO
    assert_well_formed(module)


def test_a_function_that_calls_what_has_effects_is_impure() -> None:
    bb, x = BlockBuilder(), a_parameter()
    with bb.function("loud", [x]):
        bb.emit_func_output(bb.emit(call_packed("print", [x], [INFO])))
    with bb.function("quiet", [x]):
        bb.emit_func_output(bb.emit(call_packed("copy", [x], [INFO], pure=True)))

    assert [built(bb.get(), name).is_pure for name in ("loud", "quiet")] == [False, True]


def test_a_finished_function_is_added_under_a_free_name() -> None:
    x = a_parameter()
    function = Function((x,), SeqExpr((), x), INFO)
    bb = BlockBuilder(IRModule({"f": function}))

    added = [bb.add_func(function, "f"), bb.add_func(function, "f"), bb.add_func(function, "g")]

    assert [g.name for g in added] == ["f1", "f2", "g"]
    assert added[0].struct_info == function.struct_info
    assert list(bb.get().functions) == ["f", "f1", "f2", "g"]


def test_call_tir_of_several_outputs_is_a_tuple() -> None:
    made = call_tir(GlobalVar("f"), [a_parameter()], [INFO, INFO])

    assert made.struct_info == TupleStructInfo((INFO, INFO))


# --- errors -----------------------------------------------------------------------------


def test_an_unknown_operator_is_refused() -> None:
    with pytest.raises(IllFormed, match=r"^no operator R\.frobnicate$"):
        call("frobnicate")


def test_emitting_needs_an_open_function() -> None:
    message = r"^no function is open: use `with bb\.function\(name, params\):`$"
    with pytest.raises(IllFormed, match=message):
        BlockBuilder().emit(const(1))


def test_a_function_needs_an_output_and_is_dropped_without_one() -> None:
    bb = BlockBuilder()

    with (
        pytest.raises(IllFormed, match=r"^function 'main' has no output: call emit_func_output$"),
        bb.function("main"),
    ):
        bb.emit(const(1))

    assert bb.get().functions == {}


def test_a_function_has_one_output() -> None:
    bb = BlockBuilder()

    with bb.function("main"):
        bb.emit_func_output(const(1))
        with pytest.raises(IllFormed, match=r"^function 'main' has two outputs$"):
            bb.emit_func_output(const(2))


def test_a_function_is_defined_once() -> None:
    bb = BlockBuilder()
    with bb.function("main"):
        bb.emit_func_output(const(1))

    with (
        pytest.raises(IllFormed, match=r"^function 'main' is defined twice$"),
        bb.function("main"),
    ):
        pass


def test_a_dataflow_block_holds_no_other() -> None:
    bb = BlockBuilder()
    message = r"^a dataflow block cannot be opened inside another$"

    with (
        pytest.raises(IllFormed, match=message),
        bb.function("main"),
        bb.dataflow(),
        bb.dataflow(),
    ):
        pass


def test_outputs_are_of_dataflow_blocks() -> None:
    bb = BlockBuilder()

    with (
        pytest.raises(IllFormed, match=r"^emit_output outside of a dataflow block$"),
        bb.function("main"),
    ):
        bb.emit_output(const(1))


def test_a_dataflow_block_that_raises_leaves_nothing() -> None:
    bb, x = BlockBuilder(), a_parameter()

    def half() -> None:
        with bb.dataflow():
            bb.emit(call("exp", x))
            bb.emit(call("add", x))

    with bb.function("main", [x]):
        with pytest.raises(IllTyped):
            half()
        with bb.dataflow():
            out = bb.emit_output(call("log", x))
        bb.emit_func_output(out)

    assert names_in(bb.get()) == ["gv"]
    assert_well_formed(bb.get())
