"""Visitors see everything once, in order; mutators keep what they do not change."""

import numpy as np
import pytest

from relax_egraph.ir.block_builder import BlockBuilder, call, call_packed, call_tir
from relax_egraph.ir.dims import symbol
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.expr import (
    BindingBlock,
    Call,
    Constant,
    Expr,
    ExternFunc,
    Function,
    GlobalVar,
    If,
    MatchCast,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
    const,
    shape,
)
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.op import Op
from relax_egraph.ir.struct_info import ObjectStructInfo, tensor
from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.ir.visitor import ExprMutator, ExprVisitor, children, free_vars, post_order_visit
from relax_egraph.ir.well_formed import assert_well_formed

n = symbol("n")
INFO = tensor((n, 4), "float32")


def everything() -> Function:
    """A function with every kind of expression, binding and block."""
    x = Var("x", INFO)
    cond = Var("cond", tensor((), "bool"))
    bb = BlockBuilder()
    with bb.function("main", [x, cond]):
        with bb.dataflow():
            a = bb.emit(call("add", x, const(1.0)))
            b = bb.emit(call("reshape", a, shape([n * 4])))
            c = bb.emit_output(Tuple((a, b)))
        d = bb.emit(TupleGetItem(c, 0))
        packed = [d, StringImm("s"), PrimValue(n)]
        e = bb.emit(call_packed("f", packed, [ObjectStructInfo()]), "e")
        m = bb.emit_match_cast(e, INFO, "m")
        t = bb.emit(call_tir(GlobalVar("loops"), [m], INFO), "t")
        then = Var("then", INFO)
        one = SeqExpr((BindingBlock((VarBinding(then, call("exp", t)),)),), then)
        g = bb.emit(If(cond, one, SeqExpr((), t), INFO), "g")
        y = Var("y", INFO)
        local = Function((y,), SeqExpr((), y), INFO)
        h = bb.emit(local, "h")
        out = bb.emit(Call(h, (g,), struct_info=INFO), "out")
        bb.emit_func_output(out)
    function = bb.get()["main"]
    assert isinstance(function, Function)
    return function


def test_a_visitor_sees_uses_and_definitions_in_order() -> None:
    class Log(ExprVisitor):
        def __init__(self) -> None:
            self.seen: list[str] = []

        def visit_var(self, var: Var) -> None:
            self.seen.append(var.name)

        def visit_var_def(self, var: Var) -> None:
            self.seen.append(f"{var.name}=")

        def visit_constant(self, constant: Constant) -> None:
            self.seen.append("const")

        def visit_shape_expr(self, shape: ShapeExpr) -> None:
            self.seen.append("shape")

        def visit_prim_value(self, value: PrimValue) -> None:
            self.seen.append("prim")

        def visit_string_imm(self, string: StringImm) -> None:
            self.seen.append("string")

        def visit_global_var(self, function: GlobalVar) -> None:
            self.seen.append(f"cls.{function.name}")

        def visit_extern_func(self, function: ExternFunc) -> None:
            self.seen.append(f'"{function.name}"')

    log = Log()

    log.visit_expr(everything())

    assert " ".join(log.seen) == (
        "x= cond= x const lv= lv shape lv1= lv lv1 gv= gv gv1= "
        '"f" gv1 string prim e= e m= cls.loops m t= cond t then= then t g= y= y h= h g out= out'
    )


@pytest.mark.parametrize(
    ("method", "count"),
    [
        ("visit_call", 6),
        ("visit_tuple", 2),
        ("visit_tuple_getitem", 1),
        ("visit_if", 1),
        ("visit_function", 2),
        ("visit_seq_expr", 4),
        ("visit_dataflow_block", 1),
        ("visit_binding_block", 2),
        ("visit_var_binding", 10),
        ("visit_match_cast", 1),
        ("visit_dataflow_var", 3),
    ],
)
def test_each_kind_has_its_method(method: str, count: int) -> None:
    calls: list[object] = []

    class Counting(ExprVisitor):
        pass

    def counted(self: ExprVisitor, node: object) -> None:
        calls.append(node)
        getattr(ExprVisitor, method)(self, node)

    setattr(Counting, method, counted)

    Counting().visit_expr(everything())

    assert len(calls) == count


def test_children_are_what_is_directly_inside() -> None:
    x = Var("x", INFO)
    one = const(1.0)

    assert children(call("add", x, one)) == (x, one)
    assert children(Call(x, (one,))) == (x, one)
    assert children(one) == ()


def test_post_order_goes_from_the_inside_out() -> None:
    x = Var("x", INFO)
    inner = call("exp", x)
    outer = Call(call("add", x, x).op, (inner, x))
    seen: list[Expr] = []

    post_order_visit(outer, seen.append)

    assert seen == [x, inner, x, outer]


def test_free_variables_are_used_and_not_defined() -> None:
    x, y, z = (Var(name, INFO) for name in "xyz")
    body = SeqExpr((BindingBlock((VarBinding(z, call("add", x, y)),)),), z)

    assert free_vars(body) == (x, y)
    assert free_vars(Function((x,), body, INFO)) == (y,)
    assert free_vars(everything()) == ()


# --- mutators ---------------------------------------------------------------------------


class Identity(ExprMutator):
    """Changes nothing."""


class ExpIsTwice(ExprMutator):
    """``exp x`` becomes ``exp (exp x)``, nested."""

    def visit_call(self, call: Call) -> Expr:
        visited = super().visit_call(call)
        assert isinstance(visited, Call)
        if isinstance(visited.op, Op) and visited.op.name == "exp":
            return Call(visited.op, (visited,), struct_info=visited.struct_info)
        return visited


def test_a_mutator_that_changes_nothing_returns_the_same_object() -> None:
    function = everything()

    assert Identity().visit_expr(function) is function


def test_what_is_nested_in_a_result_is_bound_before_it() -> None:
    function = everything()

    changed = ExpIsTwice().visit_expr(function)

    assert isinstance(changed, Function)
    branch = next(
        b.value for block in changed.body.blocks for b in block.bindings if isinstance(b.value, If)
    )
    assert [b.var.name for b in branch.true_branch.blocks[0].bindings] == ["gv2", "then"]
    assert changed.body.blocks[0] is function.body.blocks[0]


def two_steps(first: str) -> IRModule:
    bb, x = BlockBuilder(), Var("x", INFO)
    with bb.function("main", [x]):
        with bb.dataflow():
            a = bb.emit(call(first, x), "a")
            b = bb.emit_output(call("sum", a, axis=0), "b")
        bb.emit_func_output(b)
    return bb.get()


def test_struct_info_is_inferred_anew_and_variables_follow_it() -> None:
    class ToDouble(ExprMutator):
        def visit_call(self, call_: Call) -> Expr:  # pyright: ignore[reportIncompatibleMethodOverride]  # `call` is the builder's here
            visited = super().visit_call(call_)
            assert isinstance(visited, Call)
            if isinstance(visited.op, Op) and visited.op.name == "exp":
                return call("astype", visited.args[0], dtype="float64")
            return visited

    changed = ToDouble().visit_expr(two_steps("exp")["main"])  # pyright: ignore[reportArgumentType]  # it is a relax function

    bb, x = BlockBuilder(), Var("x", INFO)
    with bb.function("main", [x]):
        with bb.dataflow():
            a = bb.emit(call("astype", x, dtype="float64"), "a")
            b = bb.emit_output(call("sum", a, axis=0), "b")
        bb.emit_func_output(b)
    assert isinstance(changed, Function)
    assert_structural_equal(IRModule({"main": changed}), bb.get())
    assert changed.ret_struct_info == tensor((4,), "float64")


def test_a_mutator_emits_and_drops_bindings() -> None:
    class DropExp(ExprMutator):
        """``exp`` is replaced by two bindings of its own."""

        def visit_var_binding(self, binding: VarBinding) -> None:
            value = binding.value
            if isinstance(value, Call) and isinstance(value.op, Op) and value.op.name == "exp":
                negated = self.emit(call("negative", value.args[0]), "a")
                self.replace_var(binding.var, self.emit(call("negative", negated)))
                return
            super().visit_var_binding(binding)

    module = two_steps("exp")
    function = module["main"]
    assert isinstance(function, Function)

    changed = DropExp().visit_expr(function)

    assert isinstance(changed, Function)
    after = IRModule({"main": changed})
    assert [b.var.name for b in changed.body.blocks[0].bindings] == ["a1", "lv", "b"]
    assert_well_formed(after)
    value = np.ones((2, 4), np.float32)
    np.testing.assert_array_equal(evaluate(after, "main", value), value.sum(0))


def test_a_mutator_knows_what_it_has_bound() -> None:
    found: list[object] = []

    class Ask(ExprMutator):
        def visit_call(self, call: Call) -> Expr:
            found.append(self.lookup_binding(call.args[0]))
            return super().visit_call(call)

        def visit_var_binding(self, binding: VarBinding) -> None:
            super().visit_var_binding(binding)
            if binding.var.name == "a":
                self.replace_var(binding.var, self.emit(call("negative", binding.var)))

    function = two_steps("exp")["main"]
    assert isinstance(function, Function)
    first = function.body.blocks[0].bindings[0]

    Ask().visit_expr(function)

    assert found == [None, first.value]
    assert Ask().lookup_binding(first.value) is None


def test_a_block_left_empty_is_dropped() -> None:
    class Nothing(ExprMutator):
        def visit_var_binding(self, binding: VarBinding) -> None:
            self.replace_var(binding.var, const(0.0))

    changed = Nothing().visit_expr(two_steps("exp")["main"])  # pyright: ignore[reportArgumentType]  # it is a relax function

    assert isinstance(changed, Function)
    assert changed.body.blocks == ()
    assert isinstance(changed.body.body, Constant)


def test_parameters_and_match_casts_are_rebuilt() -> None:
    y = Var("y", ObjectStructInfo())
    z = Var("z", INFO)
    function = Function((y,), SeqExpr((BindingBlock((MatchCast(z, y, INFO),)),), z), INFO)

    class Typed(ExprMutator):
        def visit_var_def(self, var: Var) -> Var:
            return Var(f"{var.name}_typed", INFO)

    changed = Typed().visit_expr(function)

    assert isinstance(changed, Function)
    typed = Var("y_typed", INFO)
    expected = Function((typed,), SeqExpr((BindingBlock((MatchCast(z, typed, INFO),)),), z), INFO)
    assert_structural_equal(changed, expected)
    assert changed.params[0].name == "y_typed"
