"""A-normal form: what is nested is bound before it, in order."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from relax_egraph.ir.block_builder import call, call_packed
from relax_egraph.ir.dims import symbol
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.expr import (
    BindingBlock,
    Call,
    DataflowBlock,
    DataflowVar,
    Expr,
    Function,
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
from relax_egraph.ir.op import OPS
from relax_egraph.ir.struct_info import FuncStructInfo, ObjectStructInfo, tensor
from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.ir.well_formed import assert_well_formed, find_ill_formed
from relax_egraph.passes import normalize
from relax_egraph.script import parse
from tests.support.transformed import stays

n = symbol("n")
INFO = tensor((n, 2), "float32")
X = Var("x", INFO)
COND = Var("c", tensor((), "bool"))
SIGNATURE = 'x: R.Tensor(("n", 2), "float32"), c: R.Tensor((), "bool")'


def main(body: Expr, *blocks: BindingBlock | DataflowBlock) -> IRModule:
    return IRModule({"main": Function((X, COND), SeqExpr(blocks, body), body.struct_info)})


def normal(module: IRModule, statements: str) -> IRModule:
    """Assert that the body of `module` becomes `statements`, and that these stay."""
    after = normalize(module)
    indented = "\n".join(f"    {line}" for line in statements.strip().splitlines())
    expected = parse(f"@R.function\ndef main({SIGNATURE}):\n{indented}")

    assert_structural_equal(after, expected)
    assert_well_formed(after)
    assert normalize(after) is after
    return after


def branch(value: Expr) -> SeqExpr:
    """A branch that gives `value`, which no variable names."""
    return SeqExpr((), value)


def test_nested_calls_are_bound_from_the_inside_out() -> None:
    value = call("add", call("exp", call("negative", X)), call("exp", X))

    normal(
        main(value),
        """
gv = R.negative(x)
gv1 = R.exp(gv)
gv2 = R.exp(x)
gv3 = R.add(gv1, gv2)
return gv3
""",
    )


def test_tuples_of_leaves_stay_operands_and_their_computations_are_bound() -> None:
    pair = Tuple((call("exp", X), Tuple((X, call("log", X)))))
    value = call("concat", Tuple((TupleGetItem(pair, 0), X)), axis=0)

    normal(
        main(value),
        """
gv = R.exp(x)
gv1 = R.log(x)
gv2 = (gv, (x, gv1))[0]
gv3 = R.concat((gv2, x), axis=0)
return gv3
""",
    )


def test_a_conditional_among_operands_is_bound_with_normal_branches() -> None:
    nested = call("exp", call("exp", X))
    value = call("add", X, If(COND, branch(nested), branch(X), INFO))

    normal(
        main(value),
        """
if c:
    gv = R.exp(x)
    gv1 = R.exp(gv)
else:
    gv1 = x
gv2 = R.add(x, gv1)
return gv2
""",
    )


def test_a_computed_condition_is_bound_first() -> None:
    cond = call("max", call("greater", X, const(0.0)))
    value = If(call("logical_not", cond), branch(X), branch(X), INFO)

    normal(
        main(value),
        """
gv = R.greater(x, R.const(0.0, "float32"))
gv1 = R.max(gv)
gv2 = R.logical_not(gv1)
if gv2:
    gv3 = x
else:
    gv3 = x
return gv3
""",
    )


def test_a_sequence_for_a_value_is_spliced_in_with_its_blocks() -> None:
    a, b, out = DataflowVar("a", INFO), Var("b", INFO), Var("out", INFO)
    flow = DataflowBlock((VarBinding(a, call("exp", X)), VarBinding(b, call("log", a))))
    first = VarBinding(Var("first", INFO), call("negative", X))
    inner = SeqExpr((flow,), call("sqrt", b))
    block = BindingBlock((first, VarBinding(out, call("add", inner, first.var))))

    normal(
        main(out, block),
        """
first = R.negative(x)
with R.dataflow():
    a = R.exp(x)
    b = R.log(a)
    R.output(b)
gv = R.sqrt(b)
out = R.add(gv, first)
return out
""",
    )


def test_a_sequence_inside_of_a_dataflow_block_is_part_of_it() -> None:
    a, out = Var("a", INFO), Var("out", INFO)
    inner = SeqExpr((BindingBlock((VarBinding(a, call("exp", X)),)),), a)
    block = DataflowBlock((VarBinding(out, call("negative", inner)),))

    normal(
        main(out, block),
        """
with R.dataflow():
    a = R.exp(x)
    out = R.negative(a)
    R.output(a, out)
return out
""",
    )


def test_a_sequence_that_is_the_result_is_part_of_the_body() -> None:
    a = Var("a", INFO)
    inner = SeqExpr((BindingBlock((VarBinding(a, call("exp", X)),)),), SeqExpr((), a))

    normal(main(inner), "a = R.exp(x)\nreturn a")


def test_what_is_cast_and_what_is_called_are_bound() -> None:
    y, cast = Var("y", INFO), Var("cast", INFO)
    identity = Function((y,), SeqExpr((), y), INFO)
    called = Call(identity, (call("exp", X),), struct_info=INFO)
    block = BindingBlock((MatchCast(cast, called, INFO),))

    normal(
        main(cast, block),
        """
@R.function
def gv(y: R.Tensor(("n", 2), "float32")) -> R.Tensor(("n", 2), "float32"):
    return y
gv1 = R.exp(x)
gv2 = gv(gv1)
cast = R.match_cast(gv2, R.Tensor((n, 2), "float32"))
return cast
""".replace('("n", 2)', "(n, 2)"),
    )


def test_effects_keep_their_order() -> None:
    def effect(name: str) -> Call:
        return call_packed("log", [X, const(name == "b")], [INFO])

    a, b, kept = effect("a"), effect("b"), Var("kept", INFO)
    inner = SeqExpr((BindingBlock((VarBinding(kept, b),)),), kept)
    seen: list[bool] = []

    def log(x: Any, mark: Any) -> Any:
        seen.append(bool(mark))
        return x

    after = normalize(main(call("add", a, inner)))
    evaluate(after, "main", np.ones((1, 2), np.float32), np.bool_(True), packed={"log": log})

    assert seen == [False, True]


def test_missing_struct_info_is_inferred() -> None:
    unresolved = Call(OPS["exp"], (Call(OPS["negative"], (X,)),))

    after = normalize(main(unresolved))

    expected = parse(
        f"@R.function\ndef main({SIGNATURE}):\n    gv = R.negative(x)\n"
        "    gv1 = R.exp(gv)\n    return gv1"
    )
    assert_structural_equal(after, expected)


def test_functions_among_operands_are_bound() -> None:
    y = Var("y", INFO)
    local = Function((y,), SeqExpr((), call("exp", y)), INFO)
    f = Var("f", FuncStructInfo((FuncStructInfo((INFO,), INFO), INFO), INFO))
    body = SeqExpr((), Call(f, (local, X), struct_info=INFO))
    module = IRModule({"main": Function((X, f), body, INFO)})

    after = normalize(module)

    assert len(find_ill_formed(module)) == 2
    assert_well_formed(after)


def test_a_module_in_normal_form_stays_the_same_object() -> None:
    stays(
        normalize,
        f"""
        @R.function
        def main({SIGNATURE}):
            with R.dataflow():
                lv = R.exp(x)
                gv = R.concat((lv, x), axis=0)
                R.output(gv)
            if c:
                y = R.exp(x)
            else:
                y = R.log(x)
            return (gv, (y, x))
        """,
    )


# --- random expressions -----------------------------------------------------------------


@st.composite
def nested(draw: st.DrawFn, depth: int = 4) -> Expr:
    """A tensor like `X`, computed in one expression."""
    kind = draw(st.integers(0, 7)) if depth else 0
    inner = nested(depth - 1)
    match kind:
        case 1 | 2:
            return call(draw(st.sampled_from(["exp", "negative", "tanh"])), draw(inner))
        case 3:
            return call("add", draw(inner), draw(inner))
        case 4:
            fields = (draw(inner), Tuple((draw(inner), X)))
            outer = TupleGetItem(Tuple(fields), 1)
            return TupleGetItem(outer, draw(st.integers(0, 1)))
        case 5:
            cond = call("max", call("greater", draw(inner), const(0.0)))
            return If(cond, branch(draw(inner)), branch(draw(inner)), INFO)
        case 6:
            var = Var("v", INFO)
            block = BindingBlock((VarBinding(var, draw(inner)),))
            return SeqExpr((block,), call("multiply", var, draw(inner)))
        case 7:
            y = Var("y", INFO)
            local = Function((y,), SeqExpr((), call("subtract", y, X)), INFO)
            return Call(local, (draw(inner),), struct_info=INFO)
        case _:
            return X


@settings(max_examples=60, deadline=None)
@given(nested())
def test_any_nesting_becomes_normal_once_and_keeps_its_value(value: Expr) -> None:
    module = main(value)

    after = normalize(module)

    assert_well_formed(after)
    assert normalize(after) is after
    x = np.random.default_rng(1).standard_normal((3, 2)).astype(np.float32)
    expected = evaluate(module, "main", x, np.bool_(True))
    found = evaluate(after, "main", x, np.bool_(True))
    np.testing.assert_array_equal(found, expected, strict=True)


def test_an_object_result_is_said_to_be_what_it_is() -> None:
    module = IRModule(
        {"main": Function((X,), SeqExpr((), Call(OPS["exp"], (X,))), ObjectStructInfo())}
    )

    after = normalize(module)["main"]

    assert isinstance(after, Function)
    assert after.ret_struct_info == INFO
