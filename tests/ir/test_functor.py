"""Functions of expressions by kind."""

import pytest

from relax_egraph.ir.block_builder import call
from relax_egraph.ir.expr import Call, Constant, Expr, StringImm, Var, const
from relax_egraph.ir.functor import ExprFunctor
from relax_egraph.ir.struct_info import tensor
from relax_egraph.ir.walk import METHODS


class Depth(ExprFunctor[int]):
    def __init__(self) -> None:
        super().__init__()
        self.visited: list[Expr] = []

    def visit_var(self, var: Var) -> int:
        return 0

    def visit_constant(self, constant: Constant) -> int:
        return 0

    def visit_call(self, call: Call) -> int:
        self.visited.append(call)
        return 1 + max(map(self.visit_expr, call.args))


def test_a_shared_expression_is_computed_once() -> None:
    x = Var("x", tensor((4,), "float32"))
    shared = call("add", x, const(1.0))
    depth = Depth()

    assert depth.visit_expr(call("multiply", shared, call("exp", shared))) == 3
    assert depth.visited.count(shared) == 1


def test_a_kind_without_a_method_is_named() -> None:
    with pytest.raises(NotImplementedError) as refused:
        Depth().visit_expr(StringImm("a"))

    assert str(refused.value) == "Depth computes nothing of StringImm"


def test_there_is_a_method_for_every_kind() -> None:
    assert all(hasattr(ExprFunctor, method) for method in METHODS.values())
