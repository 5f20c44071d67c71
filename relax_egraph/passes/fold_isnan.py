"""Folds ``R.isnan`` of values that are proven to be finite."""

from relax_egraph.ir.block_builder import call as new_call
from relax_egraph.ir.expr import Call, Expr, Function, MatchCast, ShapeExpr, VarBinding, const
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.mutator import ExprMutator
from relax_egraph.ir.op import Op
from relax_egraph.ir.struct_info import TensorStructInfo
from relax_egraph.ir.walk import post_order_visit
from relax_egraph.passes.analyses.finite_ranges import Ranges
from relax_egraph.passes.infra import function_pass


@function_pass(name="fold_isnan", opt_level=1)
def fold_isnan(function: Function, _: IRModule) -> Function:
    """Replace ``R.isnan(x)`` by false where `finite_ranges` proves that `x` is finite.

    Exporters guard against rows that are masked entirely: ``where(isnan(p), 0, p)`` with
    ``p = softmax(q · k + mask)``.  Where the mask is finite, the guard is redundant.
    """
    if not _contains_isnan(function):
        return function
    changed = _Folder().visit_expr(function)
    assert isinstance(changed, Function)
    return changed


def _contains_isnan(function: Function) -> bool:
    calls: list[Expr] = []

    def note(expr: Expr) -> None:
        if _is_isnan(expr):
            calls.append(expr)

    post_order_visit(function, note)
    return bool(calls)


def _is_isnan(expr: Expr) -> bool:
    return isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name == "isnan"


class _Folder(ExprMutator):
    def __init__(self) -> None:
        super().__init__()
        self._ranges = Ranges()

    def visit_var_binding(self, binding: VarBinding) -> None:
        self._ranges.bind(binding.var, binding.value)
        super().visit_var_binding(binding)

    def visit_match_cast(self, binding: MatchCast) -> None:
        self._ranges.bind(binding.var, binding.value)
        super().visit_match_cast(binding)

    def visit_call(self, call: Call) -> Expr:
        info = call.struct_info
        if not _is_isnan(call) or not isinstance(info, TensorStructInfo) or info.dims is None:
            return super().visit_call(call)
        if self._ranges.of(call.args[0]) is None:
            return super().visit_call(call)
        return new_call("broadcast_to", const(False, "bool"), ShapeExpr(info.dims))
