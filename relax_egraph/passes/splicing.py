"""A mutator that splices blocks and sequences into the current position."""

from collections.abc import Sequence

from relax_egraph.ir.expr import (
    Binding,
    BindingBlock,
    Block,
    DataflowBlock,
    Expr,
    SeqExpr,
)
from relax_egraph.ir.mutator import ExprMutator
from relax_egraph.ir.walk import is_leaf
from relax_egraph.passes.to_non_dataflow import merged_blocks


class Splicer(ExprMutator):
    """An `ExprMutator` that can splice sequences, with their blocks, between bindings.

    Consecutive binding blocks are merged.
    """

    def __init__(self) -> None:
        super().__init__()
        self._finished: list[list[Block]] = []

    @property
    def in_dataflow(self) -> bool:
        """Whether the current block is a dataflow block."""
        return self._open[-1][1]

    def splice(self, block: Block) -> None:
        """Insert a block at the current position; inside a dataflow block, only its bindings."""
        if self.in_dataflow or isinstance(block, BindingBlock):
            self._open[-1][0].extend(block.bindings)
        else:
            self._flush()
            self._finished[-1].append(block)

    def visit_seq_expr(self, seq: SeqExpr) -> Expr:
        """Visit the blocks, then the result, whose spliced bindings follow the blocks."""
        self._finished.append([])
        for block in seq.blocks:
            self._visit_block(block)
        self._open.append(([], False))
        body = self.visit_expr(seq.body)
        body = body if is_leaf(body) else self.emit(body)
        self._flush()
        self._open.pop()
        blocks = tuple(self._finished.pop())
        if body is seq.body and _same(blocks, seq.blocks):
            return merged_blocks(seq)
        return merged_blocks(SeqExpr(blocks, body))

    def _visit_block(self, block: Block) -> None:
        """Visit the bindings of `block` in a block of its kind."""
        self._open.append(([], isinstance(block, DataflowBlock)))
        for binding in block.bindings:
            self.visit_binding(binding)
        self._flush(block)
        self._open.pop()

    def _flush(self, before: Block | None = None) -> None:
        """Finish the current block unless it is empty; the result is `before` if that is equal."""
        bindings, dataflow = self._open[-1]
        if before is not None and _same(bindings, before.bindings):
            self._finished[-1].append(before)
        elif bindings:
            kind = DataflowBlock if dataflow else BindingBlock
            self._finished[-1].append(kind(tuple(bindings)))
        bindings.clear()


def _same(new: Sequence[Binding | Block], old: Sequence[Binding | Block]) -> bool:
    return len(new) == len(old) and all(a is b for a, b in zip(new, old, strict=True))
