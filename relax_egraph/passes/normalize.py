"""A-normal form: every operand becomes a leaf."""

from dataclasses import replace

from relax_egraph.ir.conditional import result_info
from relax_egraph.ir.expr import (
    Call,
    DataflowBlock,
    Expr,
    Function,
    If,
    SeqExpr,
    TupleGetItem,
)
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.op import Op, infer
from relax_egraph.ir.struct_info import ObjectStructInfo
from relax_egraph.passes.infra import function_pass
from relax_egraph.passes.splicing import Splicer

_OBJECT = ObjectStructInfo()


@function_pass(name="normalize")
def normalize(function: Function, _: IRModule) -> Function:
    """Bind each nested operand, condition and result to a variable before its use.

        gv = R.add(R.exp(x), if c: ... else: ...)
        -->
        gv1 = R.exp(x)
        gv2 = if c: ... else: ...
        gv = R.add(gv1, gv2)

    The order of evaluation is the callee, then the operands from the left.  A sequence that is a
    value is spliced into the enclosing block.  Missing struct info is inferred.  Tuples of leaves
    stay operands.  Consecutive binding blocks are merged; otherwise, a module in normal form is
    returned itself.
    """
    changed = _Normalizer().visit_expr(function)
    assert isinstance(changed, Function)
    return changed


class _Normalizer(Splicer):
    def visit_seq_expr(self, seq: SeqExpr) -> Expr:
        """A sequence that is used as a value."""
        for block in seq.blocks:
            if isinstance(block, DataflowBlock) and not self.in_dataflow:
                self._flush()
                self._visit_block(block)
            else:
                for binding in block.bindings:
                    self.visit_binding(binding)
        return self.visit_expr(seq.body)

    def visit_call(self, call: Call) -> Expr:
        if not isinstance(call.op, Op):
            callee = self._leaf(self.visit_expr(call.op))
            call = call if callee is call.op else replace(call, op=callee)
        visited = super().visit_call(call)
        if not isinstance(visited, Call) or visited.struct_info != _OBJECT:
            return visited
        info = infer(visited)
        return visited if info == _OBJECT else replace(visited, struct_info=info)

    def visit_tuple_getitem(self, value: TupleGetItem) -> Expr:
        inner = self._leaf(self.visit_expr(value.tuple_value))
        return value if inner is value.tuple_value else TupleGetItem(inner, value.index)

    def visit_if(self, branch: If) -> Expr:
        cond = self._leaf(self.visit_expr(branch.cond))
        visited = super().visit_if(branch if cond is branch.cond else replace(branch, cond=cond))
        if not isinstance(visited, If) or visited.struct_info != _OBJECT:
            return visited
        info = result_info(visited.true_branch, visited.false_branch)
        return visited if info == _OBJECT else replace(visited, struct_info=info)

    def visit_function(self, function: Function) -> Expr:
        visited = super().visit_function(function)
        assert isinstance(visited, Function)
        if function.ret_struct_info in (_OBJECT, visited.ret_struct_info):
            return visited
        return replace(visited, ret_struct_info=function.ret_struct_info)

    def _each(self, exprs: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """Bind each operand when it is visited, so that effects stay in order."""
        new = tuple(self._leaf(self.visit_expr(e)) for e in exprs)
        return exprs if all(a is b for a, b in zip(new, exprs, strict=True)) else new

    def _seq(self, seq: SeqExpr) -> SeqExpr:
        visited = Splicer.visit_seq_expr(self, seq)
        assert isinstance(visited, SeqExpr)
        return visited
