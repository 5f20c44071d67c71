"""Merges adjacent dataflow blocks."""

from dataclasses import replace
from itertools import groupby, pairwise

from relax_egraph.ir.expr import Block, DataflowBlock, Expr, Function, SeqExpr
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.mutator import ExprMutator
from relax_egraph.ir.walk import sequences_of
from relax_egraph.passes.analyses.visibility import without_unread_outputs
from relax_egraph.passes.infra import function_pass


@function_pass(name="merge_dataflow_blocks")
def merge_dataflow_blocks(function: Function, _: IRModule) -> Function:
    """Turn each run of adjacent dataflow blocks into one block.

    An output that only the block itself reads becomes local to it.  Empty blocks are dropped.
    """
    if not any(_has_adjacent(seq) for seq in sequences_of(function)):
        return function
    merged = _Merger().visit_expr(function)
    assert isinstance(merged, Function)
    return without_unread_outputs(merged)


def _has_adjacent(seq: SeqExpr) -> bool:
    kinds = [isinstance(block, DataflowBlock) for block in seq.blocks if block.bindings]
    return len(kinds) < len(seq.blocks) or any(a and b for a, b in pairwise(kinds))


class _Merger(ExprMutator):
    def visit_seq_expr(self, seq: SeqExpr) -> Expr:
        visited = super().visit_seq_expr(seq)
        assert isinstance(visited, SeqExpr)
        blocks: list[Block] = []
        for is_dataflow, run in groupby(
            (b for b in visited.blocks if b.bindings), lambda b: isinstance(b, DataflowBlock)
        ):
            adjacent = list(run)
            if is_dataflow and len(adjacent) > 1:
                blocks.append(DataflowBlock(tuple(b for each in adjacent for b in each.bindings)))
            else:
                blocks += adjacent
        return replace(visited, blocks=tuple(blocks))
