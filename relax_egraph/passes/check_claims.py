"""Checks claims at run time: declared struct info that is not proven."""

from collections.abc import Iterator
from dataclasses import replace

from relax_egraph.errors import IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.assumptions import Assumptions, assuming
from relax_egraph.ir.conditional import branch_result
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import (
    BindingBlock,
    Call,
    DataflowVar,
    Expr,
    Function,
    If,
    MatchCast,
    SeqExpr,
    ShapeExpr,
    Var,
    VarBinding,
)
from relax_egraph.ir.fitting import fit_windows
from relax_egraph.ir.lower_bounds import LowerBounds
from relax_egraph.ir.module import BaseFunc, IRModule
from relax_egraph.ir.mutator import ExprMutator
from relax_egraph.ir.op import Op
from relax_egraph.ir.refusals import RESULT_IS_CHECKED, holds, proven, windows_may_overhang
from relax_egraph.ir.solving import differences
from relax_egraph.ir.struct_info import (
    Shape,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    known_extents,
)
from relax_egraph.ir.walk import is_leaf
from relax_egraph.passes.analyses.needed_dims import may_fail
from relax_egraph.passes.check_assumptions import assumed_behind
from relax_egraph.passes.infra import Pass


def check_claims_assuming(assumptions: Assumptions) -> Pass:
    """`check_claims`, without checks that follow from `assumptions` on symbols of parameters.

    Raises `IllTyped` for an operator whose operands contradict each other under the assumptions.
    """

    def run(module: IRModule) -> IRModule:
        functions: dict[str, BaseFunc] = dict(module.functions)
        for name, function in module.relax_functions():
            if not function.attrs.get("primitive"):
                known = assumed_behind(function, assumptions)
                with assuming(known):
                    functions[name] = _Checker(name, module, known).function(function)
        changed = any(functions[name] is not f for name, f in module.functions.items())
        return replace(module, functions=functions) if changed else module

    return Pass("check_claims", 0, run)


check_claims = check_claims_assuming(Assumptions())
"""Insert an ``R.match_cast`` where the declaration of a variable or result is not proven.

    y: R.Tensor((4,), "float32") = R.unique(x)
    -->
    lv = R.unique(x)
    y = R.match_cast(lv, R.Tensor((4,), "float32"))

A check also precedes an operator whose windows may not fit, with its message (`ir.fitting`), and a
value with an extent that may be negative or divide by zero:

    y_shape = R.match_cast(R.shape([n - 4]), R.Shape((max(0, n - 4),)))
    y = R.zeros(R.shape([n - 4]))

Afterwards all struct info holds at run time, so that lowered code stays within its own memory.  A
function guarantees its signature: its result is checked inside of it.  `vm_shape_lower` checks the
results of packed functions and closures.  Functions that become one kernel stay: a kernel has no
checks inside.
"""


class _Checker(ExprMutator):
    """Rewrites the function `name`, under the assumptions `known`."""

    def __init__(self, name: str, module: IRModule, known: Assumptions) -> None:
        super().__init__()
        self._name = name
        self._module = module
        self._known = known
        self._at = "result"
        self._extents = set[Dim]()
        """Extents that have been checked, or belong to existing values."""
        self._bounds = LowerBounds()

    def function(self, function: Function) -> Function:
        """The function with its checks; the same object if it needs none."""
        changed = self.visit_expr(function)
        assert isinstance(changed, Function)
        return changed

    def visit_function(self, function: Function) -> Expr:
        outside = self._extents
        self._extents = {d for p in function.params for d in _extents(p.struct_info)}
        visited = super().visit_function(function)
        self._extents = outside
        assert isinstance(visited, Function)
        body = self._checked(visited.body, function.ret_struct_info, "result")
        if body is visited.body and visited.ret_struct_info == function.ret_struct_info:
            return visited
        return replace(visited, body=body, ret_struct_info=function.ret_struct_info)

    def visit_seq_expr(self, seq: SeqExpr) -> Expr:
        outside, around = self._extents, self._bounds
        self._extents, self._bounds = set(outside), LowerBounds(around)
        visited = super().visit_seq_expr(seq)
        self._extents, self._bounds = outside, around
        return visited

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
        if isinstance(value, Call) and isinstance(value.op, Op):
            if not value.op.intrinsic and windows_may_overhang(value, value.op):
                fit_windows(value, self._check_window, self._bounds)
            self._check_extents(binding.var, value.op, known)
        if holds(known, binding.var.struct_info):
            self.rebind(binding, value)
            return
        if isinstance(value, Call):
            value = replace(value, struct_info=known)
        leaf = value if is_leaf(value) else self.emit(value, binding.var.name)
        self.emit_binding(MatchCast(binding.var, leaf, binding.var.struct_info))

    def _check_extents(self, var: Var, op: Op, info: StructInfo) -> None:
        """Check, before `op` is computed, the extents of its result that may be invalid."""
        if op.name in RESULT_IS_CHECKED:
            return
        new = [d for d in dict.fromkeys(_extents(info)) if d not in self._extents]
        doubtful = tuple(d for d in new if may_fail(d) or not self._is_extent(d))
        self._extents.update(new)
        if doubtful:
            claim = ShapeStructInfo(tuple(dims.maximum(0, d) for d in doubtful), len(doubtful))
            kind = DataflowVar if self._open[-1][1] else Var
            cast = kind(self._fresh(f"{var.name}_shape"), claim)
            self.emit_binding(MatchCast(cast, ShapeExpr(doubtful), claim))

    def _is_extent(self, d: Dim) -> bool:
        return dims.prove_ge(d, 0) or self._bounds.prove_nonnegative(d)

    def _check_window(self, value: Expr, shape: Shape, refusal: str) -> Expr:
        info = ShapeStructInfo(shape, len(shape))
        var = (DataflowVar if self._open[-1][1] else Var)(self._fresh("shape"), info)
        self.emit_binding(MatchCast(var, value, info, refusal=refusal))
        return var

    def _proven(self, var: Var, value: Expr) -> StructInfo:
        try:
            return proven(self._module, value)
        except IllTyped as refusal:
            where = f" where {', '.join(self._known.texts)}" if self._known else ""
            raise IllTyped(f"{self._name}: {var.name} is ill-typed{where}: {refusal}") from None

    def visit_match_cast(self, binding: MatchCast) -> None:
        self._extents.update(_extents(binding.struct_info))
        before, after = map(known_extents, (binding.value.struct_info, binding.struct_info))
        for old, new in zip(before, after, strict=False):
            self._bounds.extend(differences(old, new))
        match binding.value, binding.struct_info:
            case ShapeExpr(values=values), ShapeStructInfo(values=tuple() as claims):
                pairs = zip(values, claims, strict=False)
                self._extents.update(d for d, claim in pairs if claim == dims.maximum(0, d))
            case _:
                pass
        if holds(binding.struct_info, binding.var.struct_info):
            super().visit_match_cast(binding)
            return
        kind = DataflowVar if self._open[-1][1] else Var
        first = kind(self._fresh(binding.var.name), binding.struct_info)
        super().visit_match_cast(replace(binding, var=first))
        self.emit_binding(MatchCast(binding.var, first, binding.var.struct_info))

    def _checked(self, seq: SeqExpr, claim: StructInfo, name: str) -> SeqExpr:
        """`seq`, with a check of `claim` on its result, which is bound to `name`."""
        if holds(seq.struct_info, claim):
            return seq
        result = Var(self._fresh(name), claim)
        cast = MatchCast(result, seq.body, claim)
        if seq.blocks and isinstance(seq.blocks[-1], BindingBlock):
            *before, last = seq.blocks
            return SeqExpr((*before, BindingBlock((*last.bindings, cast))), result)
        return SeqExpr((*seq.blocks, BindingBlock((cast,))), result)


def _extents(info: StructInfo) -> Iterator[Dim]:
    """The extents of a tensor, or of the tensors in a tuple."""
    match info:
        case TensorStructInfo():
            yield from info.dims or ()
        case TupleStructInfo(fields=fields):
            for part in fields:
                yield from _extents(part)
        case _:
            pass
