"""Each law of the IR, broken alone: the message says what, where, and what is needed."""

import pytest

from relax_egraph.errors import IllFormed
from relax_egraph.ir.block_builder import BlockBuilder, call, call_packed, call_tir
from relax_egraph.ir.expr import (
    BindingBlock,
    Call,
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
    shape,
)
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.op import OPS
from relax_egraph.ir.struct_info import (
    ObjectStructInfo,
    StructInfo,
    TensorStructInfo,
    tensor,
)
from relax_egraph.ir.well_formed import assert_well_formed, find_ill_formed
from tests.support.ill_formed import (
    BOOL,
    COND,
    EXP,
    HELPER,
    INFO,
    LIBRARY,
    LOST,
    LV,
    OUT,
    PAIR,
    SEQ,
    X,
    Y,
    bind,
    flow,
    local,
    m,
    main,
    n,
)


def test_a_module_that_keeps_the_laws_is_well_formed() -> None:
    bb = BlockBuilder(IRModule(LIBRARY))
    with bb.function("main", [X, COND]):
        with bb.dataflow():
            a = bb.emit(call("add", X, const(1.0)))
            b = bb.emit_output(call_tir(GlobalVar("loops"), [a], OUT, shape([3])))
        c = bb.emit_match_cast(call_packed("f", [b], [ObjectStructInfo()]), tensor((m, m), None))
        d = bb.emit(Call(HELPER, (c,)))
        e = bb.emit(call("reshape", d, shape([m * m])))
        choice = bb.emit(If(COND, SEQ, SeqExpr((), X), INFO))
        inner = Var("inner", tensor((m, n), None))
        function = Function((inner,), SeqExpr((), e), e.struct_info)
        bb.emit(function)
        bb.emit_func_output(Tuple((choice, e)))

    assert_well_formed(bb.get())


BROKEN: list[tuple[str, IRModule, str]] = [
    # variables
    (
        "undefined",
        main(bind("a", call("exp", Y))),
        "main: a uses y, which nothing defines",
    ),
    (
        "used before",
        main(bind("a", call("exp", Y)), VarBinding(Y, EXP)),
        "main: a uses y before it is defined",
    ),
    (
        "defined twice",
        main(VarBinding(Y, EXP), VarBinding(Y, EXP)),
        "main: y is defined twice",
    ),
    (
        "dataflow variable outside",
        main(flow(VarBinding(LV, EXP)), bind("a", call("exp", LV))),
        "main: a uses lv, a dataflow variable, outside of its block",
    ),
    (
        "dataflow variable as result",
        main(flow(VarBinding(LV, EXP)), result=LV),
        "main: result uses lv, a dataflow variable, outside of its block",
    ),
    (
        "dataflow variable in a block of effects",
        main(local("lv", EXP)),
        "main: lv is a dataflow variable, bound outside of a dataflow block",
    ),
    (
        "variable of a branch",
        main(bind("a", If(COND, SEQ, SeqExpr((), X), INFO)), bind("b", call("exp", LOST))),
        "main: b uses lost outside of the branch or function that defines it",
    ),
    # symbols
    (
        "symbol in a shape",
        main(bind("a", call("broadcast_to", X, shape([m, n, 4])), tensor((m, n, 4), "float32"))),
        "main: a uses the symbol m, which no parameter and no match_cast before has alone as a "
        "dimension",
    ),
    (
        "symbol of a parameter",
        main(params=(X, COND, PAIR, Var("p", tensor((m * 2,), None)))),
        "main: parameter p uses the symbol m, which no parameter and no match_cast before has "
        "alone as a dimension",
    ),
    (
        "symbol of the result",
        main(ret=tensor((m, 4), "float32")),
        "main: result uses the symbol m, which no parameter and no match_cast before has alone "
        "as a dimension",
    ),
    (
        "symbol before its match_cast",
        main(
            bind("a", shape([m]), shape([m]).struct_info),
            MatchCast(Var("b", tensor((m, 4), "float32")), X, tensor((m, 4), "float32")),
        ),
        "main: a uses the symbol m, which no parameter and no match_cast before has alone as a "
        "dimension",
    ),
    # normal form
    (
        "nested call",
        main(bind("a", Call(EXP.op, (EXP,), struct_info=INFO))),
        "main: a has a call of R.exp for operand 0 of R.exp: bind it to a variable first",
    ),
    (
        "nested call in a tuple",
        main(bind("a", Tuple((X, Tuple((EXP,)))), ObjectStructInfo())),
        "main: a has a tuple of computations for operand 1 of the tuple: "
        "bind it to a variable first",
    ),
    (
        "computed condition",
        main(bind("a", If(call("equal", const(1), const(1)), SEQ, SeqExpr((), X), INFO))),
        "main: a has a call of R.equal for operand 0 of the condition: bind it to a variable first",
    ),
    (
        "nested projection",
        main(bind("a", call("exp", TupleGetItem(PAIR, 0)))),
        "main: a has a projection for operand 0 of R.exp: bind it to a variable first",
    ),
    (
        "computed result",
        main(result=EXP),
        "main: result is a call of R.exp: bind it to a variable first",
    ),
    (
        "nested sequence",
        main(bind("a", SEQ)),
        "main: a is a sequence: put its bindings into the block",
    ),
    # effects
    (
        "effects in a dataflow block",
        main(flow(local("lv", call_packed("f", [X], [INFO])))),
        "main: lv calls R.call_packed, which has side effects: move it out of the dataflow block",
    ),
    (
        "impure function in a dataflow block",
        main(flow(local("lv", Call(GlobalVar("loud"), (X,), struct_info=INFO)))),
        "main: lv calls cls.loud, which has side effects: move it out of the dataflow block",
    ),
    (
        "control flow in a dataflow block",
        main(flow(local("lv", If(COND, SEQ, SeqExpr((), X), INFO)))),
        "main: lv is a conditional: move it out of the dataflow block",
    ),
    # struct info
    (
        "binding",
        main(bind("a", EXP, tensor((n, 5), "float32"))),
        'main: a is declared as R.Tensor((n, 5), "float32"), but it is R.Tensor((n, 4), "float32")',
    ),
    (
        "call",
        main(bind("a", Call(EXP.op, (X,), struct_info=BOOL), BOOL)),
        'main: a is declared as R.Tensor((), "bool"), but R.exp gives R.Tensor((n, 4), "float32")',
    ),
    (
        "operand",
        main(bind("a", Call(OPS["exp"], (PAIR,), struct_info=INFO))),
        "main: a is ill-typed: R.exp: operand x is R.Tuple("
        'R.Tensor((n, 4), "float32"), R.Tensor((n, 4), "float32")), needs a tensor',
    ),
    (
        "match_cast",
        main(MatchCast(Var("a", BOOL), X, BOOL)),
        'main: a is declared as R.Tensor((), "bool"), but it is R.Tensor((n, 4), "float32")',
    ),
    (
        "variable of a match_cast",
        main(MatchCast(Var("a", BOOL), X, INFO)),
        'main: a is declared as R.Tensor((), "bool"), but it is R.Tensor((n, 4), "float32")',
    ),
    (
        "result",
        main(ret=BOOL),
        'main: result is declared as R.Tensor((), "bool"), but it is R.Tensor((n, 4), "float32")',
    ),
    (
        "condition",
        main(bind("a", If(X, SEQ, SeqExpr((), X), INFO))),
        'main: a branches on R.Tensor((n, 4), "float32"), needs R.Tensor((), "bool")',
    ),
    (
        "branch",
        main(bind("a", If(COND, SEQ, SeqExpr((), COND), INFO))),
        'main: a is declared as R.Tensor((n, 4), "float32"), but it is R.Tensor((), "bool")',
    ),
    (
        "field",
        main(bind("a", TupleGetItem(PAIR, 2))),
        'main: a takes field 2 of R.Tuple(R.Tensor((n, 4), "float32"), '
        'R.Tensor((n, 4), "float32")), which has 2',
    ),
]


@pytest.mark.parametrize(
    ("module", "message"), [b[1:] for b in BROKEN], ids=[b[0].replace(" ", "-") for b in BROKEN]
)
def test_a_broken_law_is_reported(module: IRModule, message: str) -> None:
    assert find_ill_formed(module) == [message]


def test_every_breach_is_listed() -> None:
    module = main(bind("a", call("exp", Y)), bind("b", Call(EXP.op, (EXP,), struct_info=INFO)))

    with pytest.raises(IllFormed) as refusal:
        assert_well_formed(module)

    assert str(refusal.value) == (
        "main: a uses y, which nothing defines\n"
        "main: b has a call of R.exp for operand 0 of R.exp: bind it to a variable first"
    )


@pytest.mark.parametrize(
    "info",
    [
        INFO,
        tensor(None, "float32", 2),
        tensor((n, 4), None),
        TensorStructInfo(),
        ObjectStructInfo(),
        tensor((n + 0, 4), "float32"),
    ],
)
def test_a_variable_may_say_less_than_its_value(info: StructInfo) -> None:
    assert find_ill_formed(main(bind("a", EXP, info))) == []


def test_a_shape_that_a_variable_holds_is_a_use_of_it() -> None:
    held = Var("s", ObjectStructInfo())
    info = TensorStructInfo(held, "float32", 2)

    module = main(bind("a", call_packed("f", [X], [info], pure=True), info))

    assert find_ill_formed(module) == ["main: a uses s, which nothing defines"]


def test_a_function_that_is_marked_pure_has_no_effects() -> None:
    loud = bind("a", call_packed("print", [X], [INFO]))
    z = Var("z", INFO)
    local = Function((z,), SeqExpr((BindingBlock((loud,)),), z), INFO)

    assert find_ill_formed(main(loud, pure=False)) == []
    assert find_ill_formed(main(bind("f", local, local.struct_info), pure=False)) == [
        "main: a calls R.call_packed, which has side effects: "
        "the function is marked pure, it needs pure=False"
    ]


def test_symbols_of_a_branch_are_not_seen_after_it() -> None:
    cast = tensor((m, 4), "float32")
    inside = Var("inside", cast)
    branch = SeqExpr((BindingBlock((MatchCast(inside, X, cast),)),), inside)
    choice = bind("a", If(COND, branch, SeqExpr((), X), tensor(None, "float32", 2)))

    module = main(choice, bind("b", shape([m]), ObjectStructInfo()))

    assert find_ill_formed(module) == [
        "main: b uses the symbol m, which no parameter and no match_cast before has alone as a "
        "dimension"
    ]
