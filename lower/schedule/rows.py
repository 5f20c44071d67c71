"""Row reductions with adjacent maps: softmax, norms, sums over trailing axes.

All stages run in common row loops.  A value for each row is in a local scalar; an intermediate row
that is used again is in the row of the result that will overwrite it, or in a buffer of one row.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from relax_egraph.ir import dims
from relax_egraph.lower.schedule.inline import inline, reads_of
from relax_egraph.lower.schedule.loops import ZERO, bound, parallel
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.reductions import along_row
from relax_egraph.lower.schedule.row_loops import row_loops
from relax_egraph.lower.schedule.scheduled import Scheduled, assemble
from relax_egraph.lower.schedule.shares import cheapest_softmax
from relax_egraph.lower.schedule.stages import Axis, Stage
from relax_egraph.lower.schedule.streaming import streaming
from relax_egraph.tir.expr import Buffer, BufferLoad, TirExpr, TirVar
from relax_egraph.tir.rewrite import rewrite
from relax_egraph.tir.stmt import PrimFunc, TirBlock

LARGEST_LOCAL = 2048
"""The maximal elements of a row buffer on the stack."""


def apply(function: PrimFunc, stages: Sequence[Stage]) -> Scheduled | None:
    """The schedule of `function` if its stages share row axes and reduce within a row."""
    if not any(s.reduction for s in stages):
        return None
    stages = cheapest_softmax(inline(stages, function.outputs, hoist=True))
    depth = row_depth(stages)
    if depth is None:
        return None
    names = Names.beside(function)
    rows = [Axis(names.var("r"), a.extent) for a in stages[0].axes[:depth]]
    homes = _homes(stages, function.outputs, depth)
    inside = [_of_row(s, rows, homes) for s in stages]
    row_loops_ = [r for r in rows if r.extent != 1]
    body = row_loops(inside, names, "serial" if row_loops_ else "parallel")
    own = tuple(h.buffer for h in homes.values() if h.is_new)
    block = TirBlock("row", (), body, allocs=own)
    nest = parallel(row_loops_, block)
    whole = assemble(function, "rows", [nest])
    return streaming(whole, stages, ahead=len(stages) > 1)


def row_depth(stages: Sequence[Stage]) -> int | None:
    """The number of leading row axes; ``None`` if the stages do not fit into row loops."""
    depth = 0
    for s in stages:
        if s.reduction is not None:
            depth = max([depth, *(k + 1 for k, a in enumerate(s.axes) if a.extent != 1)])
    if any(len(s.axes) < depth for s in stages):
        return None
    rows = stages[0].axes[:depth]
    for s in stages:
        own = s.axes[:depth]
        if not all(dims.equal(a.extent, b.extent) for a, b in zip(rows, own, strict=True)):
            return None
        if not all(_stays_in_row(s, other, depth) for other in stages):
            return None
        if s.reduction and any(a.extent != 1 for a in s.axes[depth:]):
            return None
        if s.reduction and own and along_row(s, own[-1], s.reduction.axes[-1]):
            return None
    return depth


def _stays_in_row(stage: Stage, other: Stage, depth: int) -> bool:
    """Whether `stage` reads the buffer of `other` only in its own row."""
    return all(
        index == axis.var or axis.extent == 1
        for load in reads_of(stage, other.buffer)
        for index, axis in zip(load.indices[:depth], stage.axes[:depth], strict=True)
    )


@dataclass(frozen=True, slots=True)
class _Home:
    """The location of an intermediate: ``buffer`` has no row axes if it `is_new`."""

    buffer: Buffer
    is_new: bool


def _homes(stages: Sequence[Stage], outputs: Sequence[Buffer], depth: int) -> dict[int, _Home]:
    homes: dict[int, _Home] = {}
    lent: set[int] = set()
    for place, stage in enumerate(stages):
        if any(stage.buffer is b for b in outputs):
            continue
        shape = tuple(a.extent for a in stage.axes[depth:] if a.extent != 1)
        elements = dims.product(shape)
        fits = isinstance(elements, int) and elements <= LARGEST_LOCAL
        lender = None if fits else _lender(stages, place, outputs, lent)
        if lender is not None:
            lent.add(id(lender))
            homes[id(stage.buffer)] = _Home(lender, is_new=False)
            continue
        own = Buffer(
            stage.buffer.name, shape or (1,), stage.buffer.dtype, "local" if fits else "global"
        )
        homes[id(stage.buffer)] = _Home(own, is_new=True)
    return homes


def _lender(
    stages: Sequence[Stage], place: int, outputs: Sequence[Buffer], lent: set[int]
) -> Buffer | None:
    """An output whose row is unused between stage `place` and the last use of its result."""
    stage = stages[place]
    last = max(k for k, s in enumerate(stages) if s.reads(stage.buffer))
    for later in stages[last:]:
        out = later.buffer
        free = any(out is b for b in outputs) and id(out) not in lent
        alike = out.dtype == stage.buffer.dtype and later.axes == stage.axes
        reads = reads_of(later, stage.buffer)
        if (
            free
            and alike
            and not later.reduction
            and all(r.indices == later.indices for r in reads)
        ):
            return out
    return None


def _of_row(stage: Stage, rows: Sequence[Axis], homes: dict[int, _Home]) -> Stage:
    """`stage` inside the row loops, with intermediates at their locations."""
    depth = len(rows)
    inner_axes = [k for k, a in enumerate(stage.axes) if k >= depth and a.extent != 1]
    values: dict[TirVar, TirExpr] = {
        a.var: ZERO if row.extent == 1 else row.var
        for a, row in zip(stage.axes, rows, strict=False)
    }

    def at_home(buffer: Buffer, indices: tuple[TirExpr, ...]) -> BufferLoad:
        home = homes.get(id(buffer))
        if home is None or not home.is_new:
            return BufferLoad(buffer if home is None else home.buffer, indices)
        places = range(depth, len(buffer.shape))
        inside = tuple(indices[k] for k in places if buffer.shape[k] != 1)
        return BufferLoad(home.buffer, inside or (ZERO,))

    def change(e: TirExpr) -> TirExpr:
        return at_home(e.buffer, e.indices) if isinstance(e, BufferLoad) else e

    stage = bound(stage, values)
    target = at_home(stage.buffer, stage.indices)
    axes = tuple(a for k, a in enumerate(stage.axes) if k >= depth)
    unit: dict[TirVar, TirExpr] = {a.var: ZERO for a in axes if a.extent == 1}
    moved = replace(
        stage,
        buffer=target.buffer,
        indices=target.indices,
        axes=tuple(stage.axes[k] for k in inner_axes),
        value=rewrite(stage.value, change),
    )
    return bound(moved, unit)
