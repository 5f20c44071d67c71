"""The loops that threads share: perfect nests that are long enough, with independent iterations.

The kind ``parallel`` promises independent iterations.  Loops that visibly break the promise run
serially.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from relax_egraph.lower.codegen.block_init import init_without_turns
from relax_egraph.lower.codegen.loop_cost import picoseconds
from relax_egraph.lower.emit.target import Target
from relax_egraph.tir.analysis import private_buffers
from relax_egraph.tir.expr import BufferLoad, Imm, TirExpr, TirVar, binary
from relax_egraph.tir.rewrite import loads, nodes, statements, stores, variables
from relax_egraph.tir.stmt import (
    For,
    IfThenElse,
    Seq,
    Stmt,
    Store,
    TensorIntrinsic,
    TirBlock,
)

WORTH_SHARING = 5_000_000
"""The minimal cost in picoseconds of a loop that is shared."""


@dataclass(frozen=True, slots=True)
class Nest:
    """Directly nested loops that form one iteration space, outermost first.

    `cost` is the time of all iterations, in picoseconds.
    """

    loops: tuple[For, ...]
    cost: TirExpr

    @property
    def body(self) -> Stmt:
        """The body of the innermost loop."""
        return self.loops[-1].body


def shared_nests(body: Stmt, target: Target) -> dict[int, Nest]:
    """The nests in `body` that threads may share, none inside another, by ``id`` of the loop.

    Nests of a constant cost that is too small are left out.
    """
    nests: dict[int, Nest] = {}
    todo = [body]
    while todo:
        stmt = todo.pop()
        nest = nest_of(stmt, target) if isinstance(stmt, For) else None
        if nest is None:
            todo.extend(_parts(stmt))
        elif not isinstance(nest.cost, Imm) or nest.cost.value > WORTH_SHARING:
            nests[id(stmt)] = nest
    return nests


def nest_of(loop: For, target: Target) -> Nest | None:
    """The deepest nest that begins with `loop`; ``None`` if it has to run serially."""
    loops: list[For] = []
    stmt: Stmt = loop
    while isinstance(stmt, For) and stmt.kind == "parallel" and _is_fixed(stmt, loops):
        if not _is_independent(stmt):
            break
        loops.append(stmt)
        stmt = stmt.body
    if not loops or all(outer.extent == Imm(1, "int64") for outer in loops):
        return None
    middle = {outer.var: binary("//", outer.extent, 2) for outer in loops}
    cost = picoseconds(loops[-1].body, target, middle)
    for outer in loops:
        cost = binary("*", cost, outer.extent)
    return Nest(tuple(loops), cost)


def _parts(stmt: Stmt) -> tuple[Stmt, ...]:
    """The direct parts of `stmt` that may contain a nest."""
    match stmt:
        case For() if init_without_turns(stmt) is not None and private_buffers(stmt.body):
            return ()  # an empty loop runs an `init` that belongs into a task
        case For(body=body) | TirBlock(body=body):
            return (body,)
        case IfThenElse(then_case=then_case, else_case=else_case):
            return (then_case,) if else_case is None else (then_case, else_case)
        case Seq(body=parts):
            return parts
        case Store() | TensorIntrinsic():
            return ()


def _is_fixed(loop: For, outer: list[For]) -> bool:
    """Whether the extent of `loop` is the same in all iterations of the `outer` loops."""
    if any(isinstance(n, BufferLoad) for n in nodes(loop.extent)):
        return False
    return variables(loop.extent).isdisjoint(o.var for o in outer)


def _is_independent(loop: For) -> bool:
    """Whether no two iterations visibly write one element, or reduce into one."""
    moving, fetched = {loop.var}, set[TirVar]()
    private = {id(b) for b in private_buffers(loop.body)}
    for block in statements(loop.body):
        for axis in block.axes if isinstance(block, TirBlock) else ():
            if not moving.isdisjoint(variables(axis.binding)):
                if axis.kind == "reduce":
                    return False
                moving.add(axis.var)
                if _fetches(axis.binding, fetched):
                    fetched.add(axis.var)
    for store in stores(loop.body):
        if id(store.buffer) in private:
            continue
        indices = [i for i in store.indices if not moving.isdisjoint(variables(i))]
        updates = any(read.buffer is store.buffer for read in loads(store.value))
        if not indices or (updates and all(_fetches(i, fetched) for i in indices)):
            return False
    return all(
        any(id(b) in private or not moving.isdisjoint(_variables(at)) for b, at in call.buffers)
        for call in statements(loop.body)
        if isinstance(call, TensorIntrinsic)
    )


def _fetches(index: TirExpr, fetched: set[TirVar]) -> bool:
    """Whether `index` is read from memory, so that iterations may share its value."""
    return any(isinstance(n, BufferLoad) or n in fetched for n in nodes(index))


def _variables(exprs: tuple[TirExpr, ...]) -> Iterator[TirVar]:
    return (v for e in exprs for v in variables(e))
