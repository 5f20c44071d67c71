"""Row reductions with adjacent maps: softmax, norms, sums over trailing axes.

All stages run in common row loops.  A value for each row is in a local scalar; an intermediate row
that is used again is in the row of the result that will overwrite it, or in a buffer of one row.
"""

from collections.abc import Collection, Sequence
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
from relax_egraph.tir.stmt import LoopKind, PrimFunc, Stmt, TirBlock

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
    nest = all_rows(stages, stages[0].axes[:depth], function.outputs, Names.beside(function))
    whole = assemble(function, "rows", [nest])
    return streaming(whole, stages, ahead=len(stages) > 1)


def all_rows(
    stages: Sequence[Stage],
    axes: Sequence[Axis],
    outputs: Sequence[Buffer],
    names: Names,
    taken: Sequence[Buffer] = (),
) -> Stmt:
    """`stages`, whose leading axes are like `axes`, in a parallel loop over their rows."""
    rows = [Axis(names.var("r"), a.extent) for a in axes]
    loops = [r for r in rows if r.extent != 1]
    place = [ZERO if r.extent == 1 else r.var for r in rows]
    outer: LoopKind = "serial" if loops else "parallel"
    return parallel(loops, one_row(stages, place, outputs, names, outer, taken))


def one_row(
    stages: Sequence[Stage],
    place: Sequence[TirExpr],
    outputs: Sequence[Buffer],
    names: Names,
    outer: LoopKind = "serial",
    taken: Sequence[Buffer] = (),
) -> Stmt:
    """The row of `stages` at `place`, the values of their leading axes.

    Intermediates are stored in unused rows of `outputs`; those of `taken` are used until `stages`
    have read them.  Loops with independent iterations are of kind `outer`.
    """
    homes = _homes(stages, outputs, len(place), taken)
    inside = [_of_row(s, place, homes) for s in stages]
    own = tuple(h.buffer for h in homes.values() if h.is_new)
    return TirBlock("row", (), row_loops(inside, names, outer), allocs=own)


def row_depth(stages: Sequence[Stage]) -> int | None:
    """The number of leading row axes; ``None`` if the stages do not fit into row loops."""
    depth = 0
    for s in stages:
        if s.reduction is not None:
            depth = max([depth, *(k + 1 for k, a in enumerate(s.axes) if a.extent != 1)])
    return depth if are_in_rows(stages, depth) else None


def are_in_rows(stages: Sequence[Stage], depth: int, source: Stage | None = None) -> bool:
    """Whether `stages` are alike in `depth` leading axes, and read only their own row.

    This holds for a `source` of their values, too, whatever it is computed from.
    """
    if any(len(s.axes) < depth for s in stages):
        return False
    sources = stages if source is None else (source, *stages)
    rows = sources[0].axes[:depth]
    for s in stages:
        own = s.axes[:depth]
        if not all(dims.equal(a.extent, b.extent) for a, b in zip(rows, own, strict=True)):
            return False
        if not all(_stays_in_row(s, other, depth) for other in sources):
            return False
        if s.reduction and any(a.extent != 1 for a in s.axes[depth:]):
            return False
        if s.reduction and own and along_row(s, own[-1], s.reduction.axes[-1]):
            return False
    return True


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


def _homes(
    stages: Sequence[Stage], outputs: Sequence[Buffer], depth: int, taken: Sequence[Buffer]
) -> dict[int, _Home]:
    homes: dict[int, _Home] = {}
    lent = {id(b) for b in taken}
    for place, stage in enumerate(stages):
        if any(stage.buffer is b for b in outputs):
            continue
        shape = tuple(a.extent for a in stage.axes[depth:] if a.extent != 1)
        elements = dims.product(shape)
        fits = isinstance(elements, int) and elements <= LARGEST_LOCAL
        free = {id(b) for b in taken if _is_last_read(stages, place, b)}
        taken = [b for b in taken if id(b) not in free]
        lent -= free
        lender = None if fits else lender_of(stages, place, outputs, lent)
        if lender is not None:
            lent.add(id(lender))
            homes[id(stage.buffer)] = _Home(lender, is_new=False)
            continue
        own = Buffer(
            stage.buffer.name, shape or (1,), stage.buffer.dtype, "local" if fits else "global"
        )
        homes[id(stage.buffer)] = _Home(own, is_new=True)
    return homes


def _is_last_read(stages: Sequence[Stage], place: int, buffer: Buffer) -> bool:
    """Whether stage `place` is the last one that reads `buffer`, each element in its own turn."""
    stage = stages[place]
    reads = reads_of(stage, buffer)
    return (
        bool(reads)
        and stage.reduction is None
        and all(r.indices == stage.indices for r in reads)
        and not any(s.reads(buffer) for s in stages[place + 1 :])
    )


def lender_of(
    stages: Sequence[Stage], place: int, outputs: Sequence[Buffer], lent: Collection[int] = ()
) -> Buffer | None:
    """An output whose row is unused between stage `place` and the last use of its result.

    `lent` are the identities of outputs that are used otherwise.
    """
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


def _of_row(stage: Stage, place: Sequence[TirExpr], homes: dict[int, _Home]) -> Stage:
    """`stage` inside the row loops, with intermediates at their locations."""
    depth = len(place)
    inner_axes = [k for k, a in enumerate(stage.axes) if k >= depth and a.extent != 1]
    values = {a.var: at for a, at in zip(stage.axes, place, strict=False)}

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
