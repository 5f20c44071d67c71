"""When a block's `init` runs: where its reduce axes are 0, and ahead of a vectorized loop."""

from collections.abc import Callable
from dataclasses import replace

from relax_egraph.tir.expr import Binary, Imm, TirExpr
from relax_egraph.tir.rewrite import variables
from relax_egraph.tir.stmt import BlockAxis, For, IfThenElse, Stmt, TirBlock

_ZERO, _ONE = Imm(0, "int64"), Imm(1, "int64")


def guarded_init(block: TirBlock, init: Stmt) -> Stmt:
    """`init` under the condition that all reduce axes of `block`, which are in scope, are 0."""
    return _guarded(init, block, lambda axis: axis.var)


def _guarded(stmt: Stmt, block: TirBlock, place: Callable[[BlockAxis], TirExpr]) -> Stmt:
    condition: TirExpr | None = None
    for axis in block.axes:
        if axis.kind == "reduce":
            first = Binary("==", place(axis), _ZERO)
            condition = first if condition is None else Binary("and", condition, first)
    return stmt if condition is None else IfThenElse(condition, stmt)


def split_init(loop: For) -> tuple[Stmt | None, For]:
    """A vectorized `loop` over a block with an `init` as two statements: the `init`, the rest.

    If the loop reduces, its `init` runs once before it, even if the loop has no turn; else it
    is a loop of its own.  A loop that does both, or needs neither, stays as it is.
    """
    block = loop.body
    if not isinstance(block, TirBlock) or block.init is None or block.allocs:
        return None, loop
    along = {axis.kind for axis in block.axes if loop.var in variables(axis.binding)}
    body = replace(block, body=block.init, init=None)
    rest = replace(loop, body=replace(block, init=None))
    if along == {"reduce"}:
        once = replace(body, body=guarded_init(block, block.init))
        return For(loop.var, _ONE, "serial", once), rest
    if along == {"spatial"}:
        return _guarded(replace(loop, body=body), block, lambda axis: axis.binding), rest
    return None, loop
