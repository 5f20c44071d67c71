"""`remove_all_unused`: bindings and private functions that nothing needs, before and after."""

from dataclasses import replace

from relax_egraph.ir.block_builder import BlockBuilder, call, call_packed
from relax_egraph.ir.dims import symbol
from relax_egraph.ir.expr import (
    BindingBlock,
    Call,
    Expr,
    Function,
    GlobalVar,
    If,
    MatchCast,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
    const,
)
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.struct_info import FuncStructInfo, ObjectStructInfo, TensorStructInfo, tensor
from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.ir.well_formed import assert_well_formed
from relax_egraph.passes import remove_all_unused
from relax_egraph.tir.expr import Buffer
from relax_egraph.tir.stmt import PrimFunc, Seq

n = symbol("n")
INFO = tensor((n, 2), "float32")
X = Var("x", INFO)
COND = Var("cond", tensor((), "bool"))


def pruned(before: IRModule) -> IRModule:
    after = remove_all_unused(before)
    assert_well_formed(after)
    return after


def names(module: IRModule) -> list[str]:
    function = module["main"]
    assert isinstance(function, Function)
    return [b.var.name for block in function.body.blocks for b in block.bindings]


def test_unused_bindings_go_with_all_that_only_they_use() -> None:
    bb = BlockBuilder()
    with bb.function("main", [X]):
        with bb.dataflow():
            a = bb.emit(call("exp", X))
            b = bb.emit(call("log", a))
            bb.emit(call("add", a, b))
            bb.emit_output(call("sqrt", b))
            out = bb.emit_output(call("negative", a))
        bb.emit_func_output(out)

    after = pruned(bb.get())

    expected = BlockBuilder()
    with expected.function("main", [X]):
        with expected.dataflow():
            kept = expected.emit(call("exp", X))
            result = expected.emit_output(call("negative", kept))
        expected.emit_func_output(result)
    assert_structural_equal(after, expected.get())


def test_binding_blocks_between_which_nothing_is_left_are_one() -> None:
    bb = BlockBuilder()
    with bb.function("main", [X]):
        first = bb.emit(call("exp", X))
        with bb.dataflow():
            bb.emit_output(call("log", first))
        bb.emit_func_output(bb.emit(call("negative", first)))

    before = bb.get()
    function = before["main"]
    assert isinstance(function, Function)
    first_block, _, last_block = function.body.blocks
    apart = replace(function, body=SeqExpr((first_block, last_block), function.body.body))

    expected = BlockBuilder()
    with expected.function("main", [X]):
        first = expected.emit(call("exp", X))
        expected.emit_func_output(expected.emit(call("negative", first)))
    assert_structural_equal(pruned(before), expected.get())
    assert_structural_equal(pruned(IRModule({"main": apart})), expected.get())


def test_one_sweep_is_enough() -> None:
    bb = BlockBuilder()
    with bb.function("main", [X]):
        with bb.dataflow():
            last = bb.emit_output(call("exp", X))
        for _ in range(5):
            with bb.dataflow():
                last = bb.emit_output(call("exp", last))
        bb.emit_func_output(X)

    once = pruned(bb.get())

    assert names(once) == []
    assert remove_all_unused(once) is once


def test_a_module_without_dead_code_stays_the_same_object() -> None:
    bb = BlockBuilder()
    with bb.function("main", [X]):
        a = bb.emit(Tuple((X, X)))
        bb.emit_func_output(bb.emit(TupleGetItem(a, 0)))
    module = bb.get()

    assert remove_all_unused(module) is module


def test_effects_and_checks_stay_with_what_they_use() -> None:
    m = symbol("m")
    v, w = (Var(name, tensor((symbol(name),), "float32")) for name in ("v", "w"))
    bb = BlockBuilder()
    with bb.function("main", [X, v, w]):
        shown = bb.emit(call("exp", X), "shown")
        bb.emit(call_packed("print", [shown], [INFO]), "printed")
        bb.emit(call_packed("copy", [shown], [ObjectStructInfo()], pure=True), "dropped")
        bb.emit(call_packed("copy", [shown], [INFO], pure=True), "copied")
        bb.emit(call("add", v, w), "refusing")
        cast = bb.emit(call("log", X), "cast")
        bb.emit_match_cast(cast, tensor((m, 2), "float32"), "checked")
        bb.emit(Tuple((X, X)), "pair")
        bb.emit_func_output(X)

    after = pruned(bb.get())

    assert names(after) == ["shown", "printed", "copied", "refusing", "cast", "checked"]


def branch(*values: tuple[str, Expr], result: Expr = X) -> SeqExpr:
    bindings = tuple(VarBinding(Var(name, INFO), value) for name, value in values)
    return SeqExpr((BindingBlock(bindings),) if bindings else (), result)


def main(*bindings: VarBinding | MatchCast, result: Expr = X) -> IRModule:
    body = SeqExpr((BindingBlock(bindings),), result)
    return IRModule({"main": Function((X, COND), body, result.struct_info, is_pure=False)})


def test_branches_are_pruned_inside() -> None:
    used, var = Var("used", INFO), Var("v", INFO)
    dead = ("dead", call("log", X))
    kept = SeqExpr((BindingBlock((VarBinding(used, call("exp", X)),)),), used)
    with_dead = SeqExpr(
        (BindingBlock((VarBinding(used, call("exp", X)), VarBinding(Var("d", INFO), dead[1]))),),
        used,
    )

    after = pruned(main(VarBinding(var, If(COND, with_dead, branch(dead), INFO)), result=var))

    expected = main(VarBinding(var, If(COND, kept, branch(), INFO)), result=var)
    assert_structural_equal(after, expected)


def test_a_conditional_without_effects_goes_and_one_with_effects_stays() -> None:
    loud = branch(("p", call_packed("print", [X], [INFO])))
    quiet = branch(("q", call("exp", X)))
    checking = SeqExpr((BindingBlock((MatchCast(Var("c", INFO), X, INFO),)),), X)

    after = pruned(
        main(
            VarBinding(Var("a", INFO), If(COND, quiet, branch(), INFO)),
            VarBinding(Var("b", INFO), If(COND, branch(), loud, INFO)),
            VarBinding(Var("c", INFO), If(COND, checking, branch(), INFO)),
        )
    )

    assert names(after) == ["b", "c"]


def test_an_unused_local_function_goes_even_if_calling_it_had_effects() -> None:
    y = Var("y", INFO)
    body = branch(("p", call_packed("print", [y], [INFO])), result=y)
    f = Var("f", FuncStructInfo((INFO,), INFO, purity=False))
    local = VarBinding(f, Function((y,), body, INFO, is_pure=False))

    assert names(pruned(main(local))) == []
    called = VarBinding(Var("r", INFO), Call(f, (X,), struct_info=INFO))
    assert names(pruned(main(local, called))) == ["f", "r"]


def test_a_local_function_is_pruned_inside() -> None:
    y, f = Var("y", INFO), Var("f", FuncStructInfo((INFO,), INFO))
    dead = Function((y,), branch(("dead", call("exp", y)), result=y), INFO)

    after = pruned(main(VarBinding(f, dead), result=f))

    expected = main(VarBinding(f, Function((y,), branch(result=y), INFO)), result=f)
    assert_structural_equal(after, expected)


def test_a_variable_that_holds_the_shape_of_another_is_used() -> None:
    size = VarBinding(Var("size", call("shape_of", X).struct_info), call("shape_of", X))
    info = TensorStructInfo(size.var, "float32", 2)
    made = VarBinding(Var("made", info), call_packed("f", [X], [info]))

    assert names(pruned(main(size, made))) == ["size", "made"]


# --- functions --------------------------------------------------------------------------

PRIVATE = {"private": True}


def calling(*callees: str, private: bool = False) -> Function:
    """A function that calls others and uses what they return."""
    x = Var("x", INFO)
    info = FuncStructInfo((INFO,), INFO)
    bindings: list[VarBinding] = []
    for name in callees:
        before = bindings[-1].var if bindings else x
        value = Call(GlobalVar(name, info), (before,), struct_info=INFO)
        bindings.append(VarBinding(Var(f"v{len(bindings)}", INFO), value))
    block = (BindingBlock(tuple(bindings)),) if bindings else ()
    result = bindings[-1].var if bindings else x
    return Function((x,), SeqExpr(block, result), INFO, attrs=PRIVATE if private else {})


def test_private_functions_that_nothing_public_reaches_are_dropped() -> None:
    module = IRModule(
        {
            "main": calling("used"),
            "used": calling("deep", private=True),
            "deep": calling(private=True),
            "alone": calling("partner", private=True),
            "partner": calling("alone", private=True),
            "public": calling(),
        }
    )

    assert list(pruned(module).functions) == ["main", "used", "deep", "public"]


def test_a_call_that_is_dropped_keeps_nothing() -> None:
    call_ = Call(GlobalVar("f", FuncStructInfo((INFO,), INFO)), (X,), struct_info=INFO)
    module = main(VarBinding(Var("v", INFO), call_), result=const(1))

    after = pruned(IRModule({**module.functions, "f": calling(private=True)}))

    assert list(after.functions) == ["main"]


def test_a_call_of_an_impure_function_stays() -> None:
    loud = Function((X,), SeqExpr((), X), INFO, is_pure=False, attrs=PRIVATE)
    call_ = Call(GlobalVar("loud"), (X,), struct_info=INFO)
    module = main(VarBinding(Var("v", INFO), call_))

    after = pruned(IRModule({**module.functions, "loud": loud}))

    assert names(after) == ["v"]
    assert list(after.functions) == ["main", "loud"]


def test_a_direct_call_of_a_loop_function_writes_its_operands_and_stays() -> None:
    buffers = (Buffer("a", (n, 2), "float32"), Buffer("b", (n, 2), "float32"))
    loops = PrimFunc(buffers, Seq(()))
    call_ = Call(GlobalVar("loops", loops.struct_info), (X, X), struct_info=INFO)
    module = IRModule({**main(VarBinding(Var("v", INFO), call_)).functions, "loops": loops})

    assert remove_all_unused(module) is module
