"""The `init` of a block: it runs where the reduce axes are 0, and if the reduction is empty."""

from collections.abc import Callable
from dataclasses import replace

from relax_egraph.tir.expr import Binary, Imm, TirExpr
from relax_egraph.tir.rewrite import statements, variables
from relax_egraph.tir.stmt import BlockAxis, For, IfThenElse, Seq, Stmt, TirBlock, seq

_ZERO, _ONE = Imm(0, "int64"), Imm(1, "int64")


def guarded_init(block: TirBlock, init: Stmt) -> Stmt:
    """`init` under the condition that all reduce axes of `block`, which are in scope, are 0."""
    return _guarded(init, block, lambda axis: axis.var)


def _guarded(stmt: Stmt, block: TirBlock, place: Callable[[BlockAxis], TirExpr]) -> Stmt:
    condition: TirExpr | None = None
    for axis in block.axes:
        if axis.kind == "reduce":
            is_zero = Binary("==", place(axis), _ZERO)
            condition = is_zero if condition is None else Binary("and", condition, is_zero)
    return stmt if condition is None else IfThenElse(condition, stmt)


def split_init(loop: For) -> tuple[Stmt | None, For]:
    """Split a vectorized `loop` over a block with an `init` into the `init` and the rest.

    The `init` of a loop over a reduce axis runs once before it, even if the loop is empty; that of
    a loop over a spatial axis is a loop of its own.  Other loops are returned unchanged.
    """
    block = loop.body
    if not isinstance(block, TirBlock) or block.init is None or block.allocs:
        return None, loop
    kinds = {axis.kind for axis in block.axes if loop.var in variables(axis.binding)}
    body = replace(block, body=block.init, init=None)
    rest = replace(loop, body=replace(block, init=None))
    if kinds == {"reduce"}:
        once = replace(body, body=guarded_init(block, block.init))
        return For(loop.var, _ONE, "serial", once), rest
    if kinds == {"spatial"}:
        return _guarded(replace(loop, body=body), block, lambda axis: axis.binding), rest
    return None, loop


def init_without_turns(loop: For) -> Stmt | None:
    """The statement that runs if `loop` is empty: the `init` of the blocks that it reduces."""
    return _only_init(loop) if _reduces(loop) else None


def _reduces(loop: For) -> bool:
    return any(
        axis.kind == "reduce" and loop.var in variables(axis.binding)
        for block in statements(loop.body)
        if isinstance(block, TirBlock) and block.init is not None
        for axis in block.axes
    )


def _only_init(stmt: Stmt) -> Stmt | None:
    match stmt:
        case For():
            body = _only_init(stmt.body)
            loop = replace(stmt, extent=_ONE, kind="serial") if _reduces(stmt) else stmt
            return body and replace(loop, body=body)
        case Seq(body=parts):
            inits = [init for init in map(_only_init, parts) if init is not None]
            return seq(*inits) if inits else None
        case TirBlock(init=init) if init is not None:
            return replace(stmt, body=guarded_init(stmt, init), init=None)
        case TirBlock():
            body = _only_init(stmt.body)
            return body and replace(stmt, body=body)
        case IfThenElse():
            body = _only_init(stmt.then_case)
            return body and IfThenElse(stmt.condition, body)
        case _:
            return None
