"""Collects bindings without effects into dataflow blocks."""

from relax_egraph.ir.call_rules import is_pure_in
from relax_egraph.ir.expr import (
    Binding,
    BindingBlock,
    Block,
    Call,
    DataflowBlock,
    Expr,
    Function,
    If,
    SeqExpr,
)
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.mutator import ExprMutator
from relax_egraph.ir.walk import children, sequences_of
from relax_egraph.passes.analyses.visibility import used_outside, with_local
from relax_egraph.passes.infra import Pass, function_pass


def convert_to_dataflow(min_size: int = 2) -> Pass:
    """Turn each run of at least `min_size` bindings without effects into a dataflow block.

    Conditionals, functions and calls with effects stay outside.  A variable that is read outside
    of the run is an output of the block, any other is local to it.  Branches and local functions
    are converted too; existing dataflow blocks stay unchanged.
    """

    @function_pass(name="convert_to_dataflow")
    def convert(function: Function, module: IRModule) -> Function:
        if not any(_has_plain_bindings(seq) for seq in sequences_of(function)):
            return function
        converter = _Converter(module, min_size)
        changed = converter.visit_expr(function)
        assert isinstance(changed, Function)
        new_blocks = converter.new_blocks
        read_outside = used_outside(changed, new_blocks)
        new_variables = (b.var for block in new_blocks for b in block.bindings)
        return with_local(changed, [v for v in new_variables if v not in read_outside])

    return convert


def _has_plain_bindings(seq: SeqExpr) -> bool:
    return any(block.bindings and not isinstance(block, DataflowBlock) for block in seq.blocks)


class _Converter(ExprMutator):
    """Rewrites one function; `new_blocks` are the dataflow blocks that it created."""

    def __init__(self, module: IRModule, min_size: int) -> None:
        super().__init__()
        self.new_blocks: list[DataflowBlock] = []
        self._module = module
        self._min_size = max(min_size, 1)

    def visit_seq_expr(self, seq: SeqExpr) -> Expr:
        visited = super().visit_seq_expr(seq)
        assert isinstance(visited, SeqExpr)
        blocks = tuple(new for block in visited.blocks for new in self._converted(block))
        return visited if blocks == visited.blocks else SeqExpr(blocks, visited.body)

    def _converted(self, block: Block) -> list[Block]:
        if isinstance(block, DataflowBlock):
            return [block]
        parts: list[list[Binding]] = []
        kinds: list[bool] = []
        for binding in block.bindings:
            flows = self._flows(binding.value)
            if not parts or kinds[-1] != flows:
                parts.append([])
                kinds.append(flows)
            parts[-1].append(binding)
        blocks: list[Block] = []
        for flows, bindings in zip(kinds, parts, strict=True):
            if flows and len(bindings) >= self._min_size:
                self.new_blocks.append(DataflowBlock(tuple(bindings)))
                blocks.append(self.new_blocks[-1])
            elif blocks and isinstance(blocks[-1], BindingBlock):
                blocks[-1] = BindingBlock((*blocks[-1].bindings, *bindings))
            else:
                blocks.append(BindingBlock(tuple(bindings)))
        return [block] if len(blocks) == 1 and isinstance(blocks[0], BindingBlock) else blocks

    def _flows(self, value: Expr) -> bool:
        """Whether a binding of `value` may stand in a dataflow block."""
        if isinstance(value, If | Function | SeqExpr):
            return False
        if isinstance(value, Call) and not is_pure_in(self._module, value):
            return False
        return all(map(self._flows, children(value)))
