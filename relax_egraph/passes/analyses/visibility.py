"""Variables of dataflow blocks that are read outside of their block."""

from collections import Counter
from collections.abc import Iterable, Iterator

from relax_egraph.ir.expr import DataflowBlock, DataflowVar, Expr, Function, SeqExpr, Var
from relax_egraph.ir.occurrences import shape_variables_in
from relax_egraph.ir.substitution import Substitution
from relax_egraph.ir.walk import post_order_visit


def used_outside(function: Function, blocks: Iterable[DataflowBlock]) -> set[Var]:
    """The variables bound in `blocks` of `function` that are read outside of their block.

    A variable that struct info names as a shape counts as read outside.
    """
    everywhere = _uses([function])
    named = shape_variables_in(function)
    outside: set[Var] = set()
    for block in blocks:
        inside = _uses([b.value for b in block.bindings])
        outside |= {
            b.var for b in block.bindings if b.var in named or everywhere[b.var] > inside[b.var]
        }
    return outside


def dataflow_blocks(function: Function) -> Iterator[DataflowBlock]:
    """The dataflow blocks of `function`, including branches and local functions."""
    blocks: list[DataflowBlock] = []

    def note(e: Expr) -> None:
        if isinstance(e, SeqExpr):
            blocks.extend(b for b in e.blocks if isinstance(b, DataflowBlock))

    post_order_visit(function, note)
    yield from blocks


def without_unread_outputs(function: Function) -> Function:
    """`function`, in which outputs that only their own dataflow block reads are local to it."""
    blocks = list(dataflow_blocks(function))
    read = used_outside(function, blocks)
    unread = {
        b.var
        for block in blocks
        for b in block.bindings
        if not isinstance(b.var, DataflowVar) and b.var not in read
    }
    return with_local(function, unread)


def with_local(function: Function, variables: Iterable[Var]) -> Function:
    """`function`, with `variables` local to their dataflow blocks."""
    renewed = {v: DataflowVar(v.name, v.struct_info) for v in variables}
    return Substitution({}, definitions=renewed).function(function) if renewed else function


def with_outputs(function: Function, variables: Iterable[Var]) -> Function:
    """`function`, with the dataflow variables `variables` as outputs of their blocks."""
    renewed = {v: Var(v.name, v.struct_info) for v in variables}
    return Substitution({}, definitions=renewed).function(function) if renewed else function


def _uses(exprs: Iterable[Expr]) -> Counter[Var]:
    uses = Counter[Var]()
    for expr in exprs:
        post_order_visit(expr, lambda e: uses.update([e]) if isinstance(e, Var) else None)
    return uses
