"""Laws that hold for every program, on random ones."""

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from relax_egraph.ir import dims
from relax_egraph.ir.agreement import substituted
from relax_egraph.ir.block_builder import BlockBuilder, call
from relax_egraph.ir.dims import symbol
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.expr import (
    Binding,
    Call,
    Constant,
    Expr,
    Function,
    SeqExpr,
    ShapeExpr,
    Tuple,
    Var,
    VarBinding,
    const,
    shape,
)
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.mutator import ExprMutator
from relax_egraph.ir.struct_info import tensor
from relax_egraph.ir.structural import assert_structural_equal, structural_equal
from relax_egraph.ir.well_formed import assert_well_formed
from relax_egraph.passes import Sequential, fold_constant, remove_all_unused

n = symbol("n")
UNARY = ("exp", "negative", "nn.relu", "tanh", "abs")
BINARY = ("add", "subtract", "multiply", "maximum")


@st.composite
def modules(draw: st.DrawFn) -> IRModule:
    """A function of matrices (n, 3), constants of shape (3,), and what is computed of them."""
    bb = BlockBuilder()
    x = Var("x", tensor((n, 3), "float32"))
    with bb.function("main", [x]):
        values: list[Expr] = [x, const([1.0, -2.0, 0.5], "float32"), const(2.0)]
        for _ in range(draw(st.integers(1, 3))):
            with bb.dataflow():
                made: list[Expr] = list(values)
                for _ in range(draw(st.integers(1, 5))):
                    a, b = draw(st.sampled_from(made)), draw(st.sampled_from(made))
                    kind = draw(st.integers(0, 3))
                    if kind == 0:
                        made.append(bb.emit(call(draw(st.sampled_from(UNARY)), a)))
                    elif kind == 1:
                        made.append(bb.emit(call(draw(st.sampled_from(BINARY)), a, b)))
                    elif kind == 2:
                        made.append(bb.emit(call("sum", a, keepdims=True, axis=())))
                    else:
                        summed = call("add", a, x)
                        made.append(bb.emit(call("broadcast_to", summed, shape([n, 3]))))
                values.append(bb.emit_output(made[-1]))
        bb.emit_func_output(Tuple(tuple(draw(st.permutations(values))[:2])))
    return bb.get()


def result_of(module: IRModule) -> Any:
    x = np.random.default_rng(1).standard_normal((4, 3)).astype(np.float32)
    return evaluate(module, "main", x)


class Renamed(ExprMutator):
    """The same program under other names, of other objects."""

    def visit_expr(self, expr: Expr) -> Expr:
        match expr:
            case Constant(data=data):
                return Constant(data.copy())
            case ShapeExpr(values=values):
                return ShapeExpr(tuple(dims.substitute(v, {"n": symbol("rows")}) for v in values))
            case _:
                return super().visit_expr(expr)

    def visit_call(self, call: Call) -> Expr:
        visited = super().visit_call(call)
        return replace(visited) if isinstance(visited, Call) else visited

    def visit_var_def(self, var: Var) -> Var:
        info = substituted(var.struct_info, {"n": symbol("rows")})
        return replace(var, name=f"other_{var.name}", struct_info=info)

    def visit_var_binding(self, binding: VarBinding) -> None:
        value = self.visit_expr(binding.value)
        var = self.visit_var_def(binding.var)
        self.replace_var(binding.var, var)
        self.emit_binding(VarBinding(var, value))


def renamed(module: IRModule) -> IRModule:
    function = module["main"]
    assert isinstance(function, Function)
    other = Renamed().visit_expr(function)
    assert isinstance(other, Function)
    return IRModule({"main": other})


def without_last_binding(module: IRModule) -> IRModule:
    function = module["main"]
    assert isinstance(function, Function)
    *blocks, last = function.body.blocks
    shorter: tuple[Binding, ...] = last.bindings[:-1]
    return IRModule(
        {
            "main": replace(
                function,
                body=SeqExpr((*blocks, replace(last, bindings=shorter)), function.body.body),
            )
        }
    )


@settings(max_examples=40, deadline=None)
@given(modules())
def test_a_program_is_equal_to_itself_renamed_and_to_nothing_shorter(module: IRModule) -> None:
    assert_structural_equal(module, renamed(module))
    assert_structural_equal(renamed(module), module)
    assert not structural_equal(module, without_last_binding(module))


@settings(max_examples=40, deadline=None)
@given(modules())
def test_what_the_builder_makes_is_well_formed(module: IRModule) -> None:
    assert_well_formed(module)


@settings(max_examples=40, deadline=None)
@given(modules())
def test_passes_keep_the_value_and_the_laws_and_find_nothing_twice(module: IRModule) -> None:
    passes = Sequential([fold_constant, remove_all_unused])

    after = passes(module)

    assert_well_formed(after)
    for expected, found in zip(result_of(module), result_of(after), strict=True):
        np.testing.assert_array_equal(found, expected, strict=True)
    assert passes(after) is after
