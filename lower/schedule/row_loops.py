"""The inner loops of a row: neighbouring stages share a pass over it if possible."""

from collections.abc import Sequence
from dataclasses import replace

from relax_egraph.ir.dtypes import is_float
from relax_egraph.lower.schedule.cut import cut
from relax_egraph.lower.schedule.inline import reads_of
from relax_egraph.lower.schedule.loops import ZERO, around, bound, collapse
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.reductions import combined, loops
from relax_egraph.lower.schedule.stages import Axis, Stage, runs
from relax_egraph.tir.expr import Buffer, TirExpr, TirVar, from_dim
from relax_egraph.tir.stmt import For, LoopKind, Stmt, Store, TirBlock, seq

BLOCK = 1 << 15
"""The terms that are summed before the partial sums are added."""


def row_loops(stages: Sequence[Stage], names: Names, outer: LoopKind) -> Stmt:
    """The stages of one row, in order.

    Each has at most one axis, or a nest of its own.  `outer` is the kind of loops with independent
    iterations: ``parallel`` if there is only one row.
    """
    return seq(*(_one_pass(p, names, outer) for p in runs(map(_flat, stages), _joins)))


def _flat(stage: Stage) -> Stage:
    """`stage` with several axes collapsed into one, if accesses are linear."""
    reduction = stage.reduction
    if len(stage.all_axes) < 2 or (reduction and stage.axes):
        return stage
    order = collapse(stage.all_axes, [stage])
    if len(order.axes) != 1:
        return stage
    moved = bound(stage, order.values)
    if reduction is None:
        return replace(moved, axes=order.axes)
    return replace(moved, reduction=replace(reduction, axes=order.axes))


def _line(stage: Stage) -> Axis | None:
    """The axis of `stage`, if it has exactly one."""
    axes = stage.all_axes
    return axes[0] if len(axes) == 1 else None


def _joins(stage: Stage, earlier: Sequence[Stage]) -> bool:
    """Whether `stage` can run in the same loop as `earlier`.

    Each place that one stage writes, others may access only in the same iteration; a sum is
    complete only after the pass.
    """
    own = _line(stage)
    lines = [_line(other) for other in earlier]
    if own is None or any(line is None or line.extent != own.extent for line in lines):
        return False
    along: dict[TirVar, TirExpr] = {line.var: own.var for line in lines if line is not None}
    for other in (bound(e, along) for e in earlier):
        reads, read = reads_of(stage, other.buffer), reads_of(other, stage.buffer)
        if reads and other.reduction:
            return False
        if any(r.indices != other.indices for r in reads):
            return False
        if any(r.indices != stage.indices for r in read):
            return False
        if other.buffer is stage.buffer and other.indices != stage.indices:
            return False
    return True


def _one_pass(stages: Sequence[Stage], names: Names, outer: LoopKind) -> Stmt:
    line = _line(stages[0])
    if line is None or (len(stages) == 1 and stages[0].reduction is None):
        return seq(*(loops(s, names, outer) for s in stages))
    is_long = not isinstance(line.extent, int) or line.extent > BLOCK
    if is_long and (outer == "parallel" or any(_is_float_sum(s) for s in stages)):
        return _by_blocks(stages, line, names, outer)
    var = names.var("k")
    return _loop([_along(s, var) for s in stages], var, from_dim(line.extent))


def _is_float_sum(stage: Stage) -> bool:
    reduction = stage.reduction
    return reduction is not None and reduction.combine == "+" and is_float(stage.buffer.dtype)


def _along(stage: Stage, place: TirExpr) -> Stage:
    """`stage` with `place` for the variable of its axis."""
    own = _line(stage)
    assert own is not None, "the stages of a pass have one axis each"
    return bound(stage, {own.var: place})


def _loop(stages: Sequence[Stage], var: TirVar, extent: TirExpr) -> Stmt:
    """Stages of one axis as a vectorized loop; totals accumulate in local scalars."""
    before: list[Stmt] = []
    inside: list[Stmt] = []
    after: list[Stmt] = []
    totals: list[Buffer] = []
    for stage in stages:
        reduction = stage.reduction
        if reduction is None:
            inside.append(Store(stage.buffer, stage.indices, stage.value))
            continue
        place, at = stage.buffer, stage.indices
        if place.scope != "local":
            place, at = _scalar(f"{place.name}_acc", place.dtype), (ZERO,)
            totals.append(place)
            after.append(Store(stage.buffer, stage.indices, place[0]))
        before.append(Store(place, at, reduction.init))
        inside.append(combined(stage, reduction, place, at))
    body = seq(*before, For(var, extent, "vectorized", seq(*inside)), *after)
    return TirBlock(stages[0].name, (), body, allocs=tuple(totals)) if totals else body


def _by_blocks(stages: Sequence[Stage], line: Axis, names: Names, outer: LoopKind) -> Stmt:
    """A pass in blocks with partial sums, which are more accurate than one long sum.

    If the blocks run in parallel, their totals are stored and combined at the end.
    """
    blocks, var = cut(line.extent, BLOCK, "b", names), names.var("k")
    (block,) = blocks.blocks
    inside: list[Stage] = []
    before: list[Stmt] = []
    between: list[Stmt] = []
    after: list[Stmt] = []
    parts: list[Buffer] = []
    stored: list[Buffer] = []
    for stage in (_along(s, blocks.start + var) for s in stages):
        reduction = stage.reduction
        if reduction is None:
            inside.append(stage)
            continue
        part = _scalar(f"{stage.buffer.name}_part", stage.buffer.dtype)
        parts.append(part)
        inside.append(replace(stage, buffer=part, indices=(ZERO,)))
        total = replace(stage, value=part[0])
        if outer == "parallel":
            all_parts = Buffer(f"{stage.buffer.name}_parts", (block.extent,), part.dtype)
            stored.append(all_parts)
            between.append(Store(all_parts, (block.var,), part[0]))
            k = names.var("k")
            after.append(_loop([replace(stage, value=all_parts[k])], k, from_dim(block.extent)))
        else:
            before.append(Store(stage.buffer, stage.indices, reduction.init))
            between.append(combined(total, reduction, stage.buffer, stage.indices))
    inner = seq(_loop(inside, var, blocks.count), *between)
    body = TirBlock("block", (), inner, allocs=tuple(parts))
    whole = seq(*before, around(blocks.blocks, body, outer), *after)
    return TirBlock("blocks", (), whole, allocs=tuple(stored)) if stored else whole


def _scalar(name: str, dtype: str) -> Buffer:
    return Buffer(name, (1,), dtype, "local")
