"""`ConstantChecker` and `ConstantFolder`, and the pass that is made of them."""

from typing import Any

from relax_egraph import IRModule
from relax_egraph.ir.apply import apply_op
from relax_egraph.ir.expr import Call, Constant, Expr, Function, Tuple, TupleGetItem, VarBinding
from relax_egraph.ir.mutator import ExprMutator
from relax_egraph.ir.op import Op
from relax_egraph.ir.reference import REFERENCE
from relax_egraph.ir.visitor import ExprVisitor
from relax_egraph.passes import function_pass


class ConstantChecker(ExprVisitor):
    """The listing: a constant, or a tuple of constants; `memo` has what was found."""

    def __init__(self) -> None:
        self.memo: dict[Expr, bool] = {}

    def check(self, expr: Expr) -> bool:
        if expr not in self.memo:
            self.visit_expr(expr)
        return self.memo.get(expr, False)

    def visit_constant(self, constant: Constant) -> None:
        self.memo[constant] = True

    def visit_tuple(self, value: Tuple) -> None:
        self.memo[value] = all(self.check(f) for f in value.fields)

    def visit_call(self, call: Call) -> None:
        """Not constant, whatever is in it."""


class ConstantFolder(ExprMutator):
    """The listing; a ``Let`` is a binding here."""

    def __init__(self) -> None:
        super().__init__()
        self.checker = ConstantChecker()

    def visit_var_binding(self, binding: VarBinding) -> None:
        value = self.visit_expr(binding.value)
        if isinstance(value, Constant):
            self.replace_var(binding.var, value)
        else:
            self.rebind(binding, value)

    def visit_tuple_getitem(self, value: TupleGetItem) -> Expr:
        res = super().visit_tuple_getitem(value)
        if not isinstance(res, TupleGetItem):
            return res
        bound = self.lookup_binding(res.tuple_value) or res.tuple_value
        return bound.fields[res.index] if isinstance(bound, Tuple) else res

    def visit_call(self, call: Call) -> Expr:
        res = super().visit_call(call)
        if not isinstance(res, Call) or not res.args or not isinstance(res.op, Op):
            return res
        if not res.op.pure or res.op.name not in REFERENCE:
            return res
        if not all([self.checker.check(a) for a in res.args]):
            return res
        return const_evaluate(res)


def const_evaluate(call: Call) -> Expr:
    """The value of a call of constants, as a constant."""
    assert isinstance(call.op, Op)
    return to_expr(apply_op(call.op, [to_value(a) for a in call.args], call.attrs))


def to_value(expr: Expr) -> object:
    if isinstance(expr, Tuple):
        return tuple(map(to_value, expr.fields))
    assert isinstance(expr, Constant)
    return expr.data


def to_expr(value: Any) -> Expr:
    """``ValueToExpr``."""
    return Tuple(tuple(map(to_expr, value))) if isinstance(value, tuple) else Constant(value)


def fold(expr: Expr) -> Expr:
    """``FoldConstant(expr)``: with a folder of its own."""
    return ConstantFolder().visit_expr(expr)


@function_pass(name="FoldConstant", opt_level=2)
def fold_constant_pass(function: Function, _: IRModule) -> Function:
    """``CreateFunctionPass(pass_func, 2, "FoldConstant", {})``."""
    folded = fold(function)
    assert isinstance(folded, Function)
    return folded
