"""What is declared and not proven is checked when the program runs."""

from dataclasses import replace

from relax_egraph.errors import IllTyped
from relax_egraph.ir.assumptions import Assumptions, assuming
from relax_egraph.ir.conditional import branch_result
from relax_egraph.ir.expr import (
    BindingBlock,
    Call,
    DataflowVar,
    Expr,
    Function,
    If,
    MatchCast,
    SeqExpr,
    Var,
    VarBinding,
)
from relax_egraph.ir.module import BaseFunc, IRModule
from relax_egraph.ir.mutator import ExprMutator
from relax_egraph.ir.refusals import holds, proven
from relax_egraph.ir.struct_info import StructInfo
from relax_egraph.ir.walk import is_leaf
from relax_egraph.passes.check_assumptions import bound_symbols
from relax_egraph.passes.infra import Pass


def check_claims_assuming(assumptions: Assumptions) -> Pass:
    """`check_claims`, without checks of what follows from `assumptions` on symbols of parameters.

    Raises `IllTyped` for an operator whose operands then are proven not to fit together.
    """

    def run(module: IRModule) -> IRModule:
        functions: dict[str, BaseFunc] = dict(module.functions)
        for name, function in module.relax_functions():
            if not function.attrs.get("primitive"):
                known = assumptions.about(bound_symbols(function))
                with assuming(known):
                    functions[name] = _Checker(name, module, known).function(function)
        changed = any(functions[name] is not f for name, f in module.functions.items())
        return replace(module, functions=functions) if changed else module

    return Pass("check_claims", 0, run)


check_claims = check_claims_assuming(Assumptions())
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


class _Checker(ExprMutator):
    """Rewrites the function `name`, under assumptions that are `known`."""

    def __init__(self, name: str, module: IRModule, known: Assumptions) -> None:
        super().__init__()
        self._name = name
        self._module = module
        self._known = known
        self._at = "result"

    def function(self, function: Function) -> Function:
        """The function with its checks; the same object if it needs none."""
        changed = self.visit_expr(function)
        assert isinstance(changed, Function)
        return changed

    def visit_function(self, function: Function) -> Expr:
        visited = super().visit_function(function)
        assert isinstance(visited, Function)
        body = self._checked(visited.body, function.ret_struct_info, "result")
        if body is visited.body and visited.ret_struct_info == function.ret_struct_info:
            return visited
        return replace(visited, body=body, ret_struct_info=function.ret_struct_info)

    def visit_if(self, branch: If) -> Expr:
        claim, names = branch.struct_info, [branch_result(self._at, k) for k in (True, False)]
        visited = super().visit_if(branch)
        assert isinstance(visited, If)
        true = self._checked(visited.true_branch, claim, names[0])
        false = self._checked(visited.false_branch, claim, names[1])
        if true is visited.true_branch and false is visited.false_branch:
            return visited
        return replace(visited, true_branch=true, false_branch=false)

    def visit_var_binding(self, binding: VarBinding) -> None:
        self._at = binding.var.name
        value = self.visit_expr(binding.value)
        known = self._proven(binding.var, value)
        if holds(known, binding.var.struct_info):
            self.rebind(binding, value)
            return
        if isinstance(value, Call):
            value = replace(value, struct_info=known)
        leaf = value if is_leaf(value) else self.emit(value, binding.var.name)
        self.emit_binding(MatchCast(binding.var, leaf, binding.var.struct_info))

    def _proven(self, var: Var, value: Expr) -> StructInfo:
        try:
            return proven(self._module, value)
        except IllTyped as refusal:
            where = f" where {', '.join(self._known.texts)}" if self._known else ""
            raise IllTyped(f"{self._name}: {var.name} is ill-typed{where}: {refusal}") from None

    def visit_match_cast(self, binding: MatchCast) -> None:
        if holds(binding.struct_info, binding.var.struct_info):
            super().visit_match_cast(binding)
            return
        kind = DataflowVar if self._open[-1][1] else Var
        first = kind(self._fresh(binding.var.name), binding.struct_info)
        super().visit_match_cast(replace(binding, var=first))
        self.emit_binding(MatchCast(binding.var, first, binding.var.struct_info))

    def _checked(self, seq: SeqExpr, claim: StructInfo, name: str) -> SeqExpr:
        """`seq`, of which the result, under a `name`, is checked to be as claimed."""
        if holds(seq.struct_info, claim):
            return seq
        result = Var(self._fresh(name), claim)
        cast = MatchCast(result, seq.body, claim)
        if seq.blocks and isinstance(seq.blocks[-1], BindingBlock):
            *before, last = seq.blocks
            return SeqExpr((*before, BindingBlock((*last.bindings, cast))), result)
        return SeqExpr((*seq.blocks, BindingBlock((cast,))), result)
