"""Turns dataflow blocks into binding blocks, and dataflow variables into plain variables."""

from dataclasses import replace
from typing import TypeVar

from relax_egraph.ir.expr import (
    BindingBlock,
    Block,
    DataflowBlock,
    DataflowVar,
    Expr,
    Function,
    MatchCast,
    SeqExpr,
    Var,
    VarBinding,
)
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.mutator import ExprMutator
from relax_egraph.passes.infra import function_pass

AnyBinding = TypeVar("AnyBinding", VarBinding, MatchCast)


@function_pass(name="to_non_dataflow")
def to_non_dataflow(function: Function, _: IRModule) -> Function:
    """Turn dataflow blocks into binding blocks, which allow allocations and calls with effects.

    The bindings and their order stay.  Afterwards the module has no `DataflowBlock` and no
    `DataflowVar`, and consecutive blocks are merged.
    """
    changed = _ToNonDataflow().visit_expr(function)
    assert isinstance(changed, Function)
    return changed


def merged_blocks(seq: SeqExpr) -> SeqExpr:
    """`seq`, with consecutive binding blocks merged."""
    blocks: list[Block] = []
    for block in seq.blocks:
        if blocks and isinstance(block, BindingBlock) and isinstance(blocks[-1], BindingBlock):
            blocks[-1] = BindingBlock((*blocks[-1].bindings, *block.bindings))
        else:
            blocks.append(block)
    return seq if len(blocks) == len(seq.blocks) else SeqExpr(tuple(blocks), seq.body)


class _ToNonDataflow(ExprMutator):
    def visit_seq_expr(self, seq: SeqExpr) -> Expr:
        visited = super().visit_seq_expr(seq)
        assert isinstance(visited, SeqExpr)
        return merged_blocks(visited)

    def visit_dataflow_block(self, block: DataflowBlock) -> Block:
        return self._rebuilt(BindingBlock(block.bindings))

    def visit_var_binding(self, binding: VarBinding) -> None:
        plain = self._plain(binding)
        super().visit_var_binding(plain)
        self._follow(binding.var, plain.var)

    def visit_match_cast(self, binding: MatchCast) -> None:
        plain = self._plain(binding)
        super().visit_match_cast(plain)
        self._follow(binding.var, plain.var)

    def _plain(self, binding: AnyBinding) -> AnyBinding:
        if not isinstance(binding.var, DataflowVar):
            return binding
        plain = Var(binding.var.name, binding.var.struct_info)
        self.replace_var(binding.var, plain)
        return replace(binding, var=plain)

    def _follow(self, local: Var, plain: Var) -> None:
        """Let uses of `local` read `plain`, or the variable that replaced it."""
        if local is not plain:
            self.replace_var(local, self.visit_expr(plain))
