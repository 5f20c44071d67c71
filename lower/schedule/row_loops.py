"""The loops inside of a row: neighbouring stages share one pass over it where they can."""

from collections.abc import Sequence

from relax_egraph.lower.schedule.inline import reads_of
from relax_egraph.lower.schedule.loops import ZERO, bound, combined, loops
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.stages import Axis, Stage
from relax_egraph.tir.expr import Buffer, TirExpr, TirVar, from_dim
from relax_egraph.tir.stmt import For, Stmt, Store, TirBlock, seq


def row_loops(stages: Sequence[Stage], names: Names) -> Stmt:
    """The stages of one row, in order.

    Each has one axis at most, or a nest of its own.
    """
    passes: list[list[Stage]] = []
    for stage in stages:
        if passes and _joins(stage, passes[-1]):
            passes[-1].append(stage)
        else:
            passes.append([stage])
    return seq(*(_one_pass(p, names) for p in passes))


def _line(stage: Stage) -> Axis | None:
    """The only axis of `stage`, if it has one axis."""
    axes = stage.all_axes
    return axes[0] if len(axes) == 1 else None


def _joins(stage: Stage, earlier: Sequence[Stage]) -> bool:
    """Whether `stage` can run in the pass of `earlier`, turn by turn.

    Each place that one of them writes, another touches in the same turn only; a sum is complete
    after the pass.
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


def _one_pass(stages: Sequence[Stage], names: Names) -> Stmt:
    line = _line(stages[0])
    if line is None or (len(stages) == 1 and stages[0].reduction is None):
        return seq(*(loops(s, names) for s in stages))
    var = names.var("k")
    before: list[Stmt] = []
    inside: list[Stmt] = []
    after: list[Stmt] = []
    totals: list[Buffer] = []
    for stage in stages:
        own = _line(stage)
        assert own is not None, "the stages of a pass have one axis each"
        stage = bound(stage, {own.var: var})
        reduction = stage.reduction
        if reduction is None:
            inside.append(Store(stage.buffer, stage.indices, stage.value))
            continue
        place, at = stage.buffer, stage.indices
        if place.scope != "local":
            place, at = Buffer(f"{place.name}_acc", (1,), place.dtype, "local"), (ZERO,)
            totals.append(place)
            after.append(Store(stage.buffer, stage.indices, place[0]))
        before.append(Store(place, at, reduction.init))
        inside.append(combined(stage, reduction, place, at))
    loop = For(var, from_dim(line.extent), "vectorized", seq(*inside))
    body = seq(*before, loop, *after)
    return TirBlock(stages[0].name, (), body, allocs=tuple(totals)) if totals else body
