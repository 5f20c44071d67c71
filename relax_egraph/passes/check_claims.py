"""What is declared and not proven is checked when the program runs."""

from dataclasses import replace

from relax_egraph.ir.agreement import implies
from relax_egraph.ir.expr import (
    BindingBlock,
    Call,
    DataflowVar,
    Expr,
    Function,
    GlobalVar,
    If,
    MatchCast,
    SeqExpr,
    Var,
    VarBinding,
)
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.mutator import ExprMutator
from relax_egraph.ir.op import Op, infer
from relax_egraph.ir.struct_info import FuncStructInfo, StructInfo, TupleStructInfo
from relax_egraph.ir.walk import is_leaf
from relax_egraph.passes.infra import function_pass


@function_pass(name="check_claims")
def check_claims(function: Function, module: IRModule) -> Function:
    """Put an ``R.match_cast`` where a variable or a result is declared to be more than is known.

        y: R.Tensor((4,), "float32") = R.unique(x)
        -->
        lv = R.unique(x)
        y = R.match_cast(lv, R.Tensor((4,), "float32"))

    Afterwards whatever struct info says holds when the program runs, so that what is lowered by
    it touches no memory but its own.  A function does what its signature says: its own result
    is checked in it.  What a call of a packed function or of a closure gives is checked as such, by
    `vm_shape_lower`.  Functions that are to become one kernel stay: nothing can be checked inside.
    """
    if function.attrs.get("primitive"):
        return function
    changed = _Checker(module).visit_expr(function)
    assert isinstance(changed, Function)
    return changed


class _Checker(ExprMutator):
    def __init__(self, module: IRModule) -> None:
        super().__init__()
        self._module = module

    def visit_function(self, function: Function) -> Expr:
        visited = super().visit_function(function)
        assert isinstance(visited, Function)
        body = self._checked(visited.body, function.ret_struct_info)
        if body is visited.body and visited.ret_struct_info == function.ret_struct_info:
            return visited
        return replace(visited, body=body, ret_struct_info=function.ret_struct_info)

    def visit_if(self, branch: If) -> Expr:
        visited = super().visit_if(branch)
        assert isinstance(visited, If)
        true = self._checked(visited.true_branch, branch.struct_info)
        false = self._checked(visited.false_branch, branch.struct_info)
        if true is visited.true_branch and false is visited.false_branch:
            return visited
        return replace(visited, true_branch=true, false_branch=false)

    def visit_var_binding(self, binding: VarBinding) -> None:
        value = self.visit_expr(binding.value)
        known = self._known(value)
        if _holds(known, binding.var.struct_info):
            self.rebind(binding, value)
            return
        if isinstance(value, Call):
            value = replace(value, struct_info=known)
        leaf = value if is_leaf(value) else self.emit(value, binding.var.name)
        self.emit_binding(MatchCast(binding.var, leaf, binding.var.struct_info))

    def visit_match_cast(self, binding: MatchCast) -> None:
        if _holds(binding.struct_info, binding.var.struct_info):
            super().visit_match_cast(binding)
            return
        kind = DataflowVar if self._open[-1][1] else Var
        first = kind(self._fresh(binding.var.name), binding.struct_info)
        super().visit_match_cast(replace(binding, var=first))
        self.emit_binding(MatchCast(binding.var, first, binding.var.struct_info))

    def _known(self, value: Expr) -> StructInfo:
        """What is true of `value`, not only said of it."""
        if not isinstance(value, Call):
            return value.struct_info
        if isinstance(value.op, GlobalVar) and value.op.name in self._module:
            callee = self._module[value.op.name]
            if not isinstance(callee, Function) or callee.attrs.get("primitive"):
                return value.struct_info
            now = replace(value, op=GlobalVar(value.op.name, callee.struct_info), sinfo_args=())
            return infer(now)
        return infer(value) if isinstance(value.op, Op) else value.struct_info

    def _checked(self, seq: SeqExpr, claim: StructInfo) -> SeqExpr:
        """`seq`, of which the result is checked to be as claimed."""
        if _holds(seq.struct_info, claim):
            return seq
        result = Var(self._fresh("result"), claim)
        cast = MatchCast(result, seq.body, claim)
        if seq.blocks and isinstance(seq.blocks[-1], BindingBlock):
            *before, last = seq.blocks
            return SeqExpr((*before, BindingBlock((*last.bindings, cast))), result)
        return SeqExpr((*seq.blocks, BindingBlock((cast,))), result)


def _holds(known: StructInfo, claim: StructInfo) -> bool:
    """Whether `claim` needs no check; of a function nothing can be checked before it is called."""
    match known, claim:
        case _, FuncStructInfo():
            return True
        case TupleStructInfo(fields=a), TupleStructInfo(fields=b):
            return len(a) == len(b) and all(map(_holds, a, b))
        case _:
            return implies(known, claim)
