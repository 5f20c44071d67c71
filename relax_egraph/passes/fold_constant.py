"""Operator calls on constants are computed once, at compile time."""

import math

import numpy as np

from relax_egraph.ir.evaluate import REFERENCE, apply_op
from relax_egraph.ir.expr import Call, Constant, Expr, Function, ShapeExpr, VarBinding
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.mutator import ExprMutator
from relax_egraph.ir.op import Op
from relax_egraph.ir.struct_info import ShapeStructInfo, StructInfo, TensorStructInfo
from relax_egraph.passes.infra import function_pass

GROWTH_LIMIT = 1 << 20
"""The bytes up to which a folded constant may be larger than its operands together.

A constant is stored in the executable, and loaded from there at every start: above this size,
computing it from less is the cheaper way to have it.
"""


@function_pass(name="fold_constant", opt_level=1)
def fold_constant(function: Function, module: IRModule) -> Function:
    """Replace what is computed of constants, and of integer shapes, by its value.

    The value is that of the reference semantics.  Calls of loop functions and packed functions
    stay, as do results of unknown or symbolic shape, constants that `GROWTH_LIMIT` forbids, and
    broadcasts that repeat anything: a kernel repeats as it reads, for nothing.
    """
    folded = _Folder().visit_expr(function)
    return folded if isinstance(folded, Function) else function


class _Folder(ExprMutator):
    def visit_call(self, call: Call) -> Expr:
        visited = super().visit_call(call)
        return _value(visited) if isinstance(visited, Call) else visited

    def visit_var_binding(self, binding: VarBinding) -> None:
        value = self.visit_expr(binding.value)
        if isinstance(value, Constant):
            self.replace_var(binding.var, value)
            return
        if isinstance(value, ShapeExpr):
            self.replace_var(binding.var, value)
        super().visit_var_binding(binding)


def _value(call: Call) -> Expr:
    if not isinstance(call.op, Op) or call.op.name not in REFERENCE:
        return call
    known = [a for a in call.args if isinstance(a, Constant | ShapeExpr) and _is_static(a)]
    if len(known) < len(call.args) or not _is_worth_storing(call.op, call.args, call.struct_info):
        return call
    operands = [a.data if isinstance(a, Constant) else a.values for a in known]
    result = apply_op(call.op, operands, call.attrs)
    return ShapeExpr(result) if isinstance(result, tuple) else Constant(result)


def _is_static(leaf: Constant | ShapeExpr) -> bool:
    return isinstance(leaf, Constant) or all(isinstance(d, int) for d in leaf.values)


def _is_worth_storing(op: Op, args: tuple[Expr, ...], result: StructInfo) -> bool:
    if isinstance(result, ShapeStructInfo):
        return True
    if not isinstance(result, TensorStructInfo) or result.dims is None or result.dtype is None:
        return False
    extents = [d for d in result.dims if isinstance(d, int)]
    if len(extents) < len(result.dims):
        return False
    size = math.prod(extents) * np.dtype(result.dtype).itemsize
    before = sum(a.data.nbytes for a in args if isinstance(a, Constant))
    if op.name == "broadcast_to":
        return size <= before
    return size <= max(before, GROWTH_LIMIT)
