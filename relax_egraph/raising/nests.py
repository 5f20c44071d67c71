"""A loop function as nests: the elements of a buffer, over the points of some axes.

Loops are distributed over the statements in their bodies.  Schedules are refused: a function with
loops that are parallel, vectorized, unrolled, split or fused says how it is to run.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.raising.unreadable import Unreadable
from relax_egraph.tir.affine import dim_of
from relax_egraph.tir.expr import Buffer, BufferLoad, Imm, TirExpr, TirVar
from relax_egraph.tir.rewrite import loads, rewrite, substitute, variables
from relax_egraph.tir.stmt import For, IfThenElse, Seq, Stmt, Store, TensorIntrinsic, TirBlock

Loops = Mapping[TirVar, Dim]
"""Loop variables with their extents, the outermost first."""

ZERO = Imm(0, "int64")


@dataclass(frozen=True, slots=True)
class Nest:
    """``buffer[at] = value`` at each point of `axes`; `init` is stored before a reduction.

    The axes of a reduction are those that `at` lacks.
    """

    buffer: Buffer
    axes: Loops
    at: tuple[TirExpr, ...]
    value: TirExpr
    init: TirExpr | None = None

    @property
    def reduced(self) -> tuple[TirVar, ...]:
        """The axes of the reduction, if it is one."""
        kept = frozenset[TirVar]().union(*map(variables, self.at))
        return tuple(v for v in self.axes if v not in kept)

    def replaced(self, new: Mapping[TirVar, TirExpr], axes: Loops) -> "Nest":
        """The nest over other `axes`, with `new` expressions for the variables of its own."""
        at = tuple(substitute(i, new) for i in self.at)
        init = None if self.init is None else substitute(self.init, new)
        return Nest(self.buffer, axes, at, substitute(self.value, new), init)

    def accesses(self, buffer: Buffer) -> Iterator[tuple[TirExpr, ...]]:
        """The indices of all accesses of `buffer`."""
        if self.buffer is buffer:
            yield self.at
        yield from (load.indices for load in loads(self.value) if load.buffer is buffer)


def nests_of(body: Stmt) -> list[Nest]:
    """The nests of the statement `body`, in order; raises `Unreadable`."""
    return list(_nests(body, {}))


def _nests(stmt: Stmt, loops: Loops) -> Iterator[Nest]:
    match stmt:
        case Seq(body=body):
            parts = [list(_nests(s, loops)) for s in body]
            for first, second in combinations(parts, 2):
                _distribute(first, second, loops)
            yield from (nest for part in parts for nest in part)
        case For(kind="serial"):
            yield from _nests(stmt.body, {**loops, stmt.var: _extent(stmt.extent)})
        case For(kind=kind):
            raise Unreadable(f"{kind} loops are a schedule")
        case TirBlock():
            yield from _block(stmt, loops)
        case Store(buffer=buffer, indices=at, value=value):
            yield _plain(Nest(buffer, loops, at, value))
        case IfThenElse():
            raise Unreadable("a store on a condition")
        case TensorIntrinsic(name=name):
            raise Unreadable(f"it calls the tensor intrinsic {name}")


def _extent(expr: TirExpr) -> Dim:
    extent = dim_of(expr)
    if extent is None:
        raise Unreadable("the extent of a loop depends on data or on another loop")
    return extent


def _distribute(first: Sequence[Nest], second: Sequence[Nest], loops: Loops) -> None:
    """Refuse statements that `loops` around both cannot be distributed over.

    They can if each turn reads and stores its own elements of a buffer that one stores and both
    access.
    """
    for a in first:
        for b in second:
            for buffer in {a.buffer, b.buffer}:
                at = [*a.accesses(buffer), *b.accesses(buffer)]
                if all(any(True for _ in n.accesses(buffer)) for n in (a, b)):
                    for loop in loops:
                        if not any(all(i[k] is loop for i in at) for k in range(len(at[0]))):
                            message = f"a loop carries {buffer.name} from turn to turn"
                            raise Unreadable(message)


def _block(block: TirBlock, loops: Loops) -> list[Nest]:
    bound: dict[TirVar, TirExpr] = {}
    for axis in block.axes:
        loop, extent = axis.binding, _extent(axis.extent)
        if extent == 1 and not variables(loop):
            bound[axis.var] = ZERO
        elif not isinstance(loop, TirVar) or loop in bound.values():
            raise Unreadable("loops that are split or fused are a schedule")
        elif loop not in loops or not dims.equal(loops[loop], extent):
            raise Unreadable(f"the axis {axis.var.name} does not run over a whole loop")
        else:
            bound[axis.var] = loop
    if block.axes and any(v not in bound.values() and e != 1 for v, e in loops.items()):
        raise Unreadable(f"a loop around the block {block.name} is none of its axes")
    begun = {s.buffer: s for s in _stores(block.init, ())}
    nests: list[Nest] = []
    for store in _stores(block.body, block.allocs):
        first = begun.pop(store.buffer, None)
        if first is not None and first.indices != store.indices:
            raise Unreadable(f"the block {block.name} begins with another element")
        nest = Nest(store.buffer, loops, store.indices, store.value, first and first.value)
        nest = _plain(nest.replaced(bound, loops))
        if nest.init is not None and not nest.reduced:
            raise Unreadable(f"the block {block.name} begins a reduction over no axis")
        for before in nests:
            _distribute([before], [nest], loops)
        nests.append(nest)
    if begun or not nests:
        raise Unreadable(f"the block {block.name} is no reduction of what it begins with")
    return nests


def _stores(body: Stmt | None, allocs: Sequence[Buffer]) -> list[Store]:
    """The stores of `body`, with the values of local scalars in place of their reads."""
    values: dict[Buffer, TirExpr] = {}

    def change(e: TirExpr) -> TirExpr:
        return values.get(e.buffer, e) if isinstance(e, BufferLoad) else e

    stores: list[Store] = []
    todo, local = [] if body is None else [body], set(allocs)
    while todo:
        stmt = todo.pop(0)
        match stmt:
            case Seq():
                todo[:0] = stmt.body
            case TirBlock(axes=(), init=None):
                local.update(stmt.allocs)
                todo.insert(0, stmt.body)
            case Store() if stmt.buffer in local and dims.product(stmt.buffer.shape) == 1:
                values[stmt.buffer] = rewrite(stmt.value, change)
            case Store() if stmt.buffer not in local:
                at = tuple(rewrite(i, change) for i in stmt.indices)
                stores.append(Store(stmt.buffer, at, rewrite(stmt.value, change)))
            case IfThenElse():
                raise Unreadable("a store on a condition")
            case _:
                raise Unreadable("loops in a block are a schedule")
    return stores


def _plain(nest: Nest) -> Nest:
    """`nest` without axes of extent 1 that its indices lack, unless it accumulates over them.

    A reduction is without those of extent 1 that its term lacks: they are dimensions that it keeps.
    """
    own = [load for load in loads(nest.value) if load.buffer is nest.buffer]
    if own:
        others = (load.indices for load in loads(nest.value) if load.buffer is not nest.buffer)
        used = {v for indices in others for i in indices for v in variables(i)}
        used |= {*nest.reduced, *variables(nest.init)} if nest.init else {*nest.axes}
    else:
        used = {v for i in nest.at for v in variables(i)}
    unit = {v: ZERO for v, extent in nest.axes.items() if extent == 1 and v not in used}
    axes = {v: extent for v, extent in nest.axes.items() if v not in unit}
    return nest.replaced(unit, axes)
