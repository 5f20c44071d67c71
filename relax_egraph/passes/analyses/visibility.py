"""Which variables of dataflow blocks are seen outside of them."""

from collections import Counter
from collections.abc import Iterable, Iterator

from relax_egraph.ir.expr import DataflowBlock, DataflowVar, Expr, Function, SeqExpr, Var
from relax_egraph.ir.occurrences import shape_variables_in
from relax_egraph.ir.substitution import Substitution
from relax_egraph.ir.walk import post_order_visit


def used_outside(function: Function, blocks: Iterable[DataflowBlock]) -> set[Var]:
    """The variables bound in `blocks`, which are in `function`, that are read outside of theirs.

    What struct info names as a shape counts as read outside.
    """
    everywhere = _uses([function])
    named = shape_variables_in(function)
    found: set[Var] = set()
    for block in blocks:
        inside = _uses([b.value for b in block.bindings])
        found |= {
            b.var for b in block.bindings if b.var in named or everywhere[b.var] > inside[b.var]
        }
    return found


def dataflow_blocks(function: Function) -> Iterator[DataflowBlock]:
    """The dataflow blocks of `function`, those of branches and local functions included."""
    found: list[DataflowBlock] = []

    def note(e: Expr) -> None:
        if isinstance(e, SeqExpr):
            found.extend(b for b in e.blocks if isinstance(b, DataflowBlock))

    post_order_visit(function, note)
    yield from found


def without_unread_outputs(function: Function) -> Function:
    """`function`, with outputs of dataflow blocks that only their block reads made local to it."""
    blocks = list(dataflow_blocks(function))
    read = used_outside(function, blocks)
    unread = {
        b.var
        for block in blocks
        for b in block.bindings
        if not isinstance(b.var, DataflowVar) and b.var not in read
    }
    return made_local(function, unread)


def made_local(function: Function, variables: Iterable[Var]) -> Function:
    """`function`, with dataflow variables for `variables`."""
    renewed = {v: DataflowVar(v.name, v.struct_info) for v in variables}
    return Substitution({}, definitions=renewed).function(function) if renewed else function


def made_outputs(function: Function, variables: Iterable[Var]) -> Function:
    """`function`, with `variables`, which are dataflow variables, seen everywhere."""
    renewed = {v: Var(v.name, v.struct_info) for v in variables}
    return Substitution({}, definitions=renewed).function(function) if renewed else function


def _uses(exprs: Iterable[Expr]) -> Counter[Var]:
    found = Counter[Var]()
    for expr in exprs:
        post_order_visit(expr, lambda e: found.update([e]) if isinstance(e, Var) else None)
    return found
