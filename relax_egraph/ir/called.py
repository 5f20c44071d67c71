"""The operators that a module calls."""

from relax_egraph.ir.expr import Call, Expr
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.op import Op
from relax_egraph.ir.operators import Operators, in_force
from relax_egraph.ir.walk import post_order_visit


def called_operators(module: IRModule) -> frozenset[Op]:
    """The operators that functions of `module` call."""
    called = set[Op]()

    def visit(expr: Expr) -> None:
        if isinstance(expr, Call) and isinstance(expr.op, Op):
            called.add(expr.op)

    for _, function in module.relax_functions():
        post_order_visit(function, visit)
    return frozenset(called)


def operators_for(module: IRModule) -> Operators:
    """The operators in force, and those of users that `module` calls.

    Raises `OperatorError` if an operator in force has the name of another one of the module.
    """
    return in_force().union(op for op in called_operators(module) if op.own)
