"""Reductions along columns with adjacent maps: softmax and moments over leading axes.

All stages run in common loops over strips of columns.  A value for each column is in a row of local
numbers; every inner loop runs along the strip, contiguously.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.lower.schedule.cut import cut
from relax_egraph.lower.schedule.inline import inline, reads_of
from relax_egraph.lower.schedule.loops import (
    WHOLE,
    ZERO,
    around,
    bound,
    collapse,
    parallel,
)
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.reductions import accumulate_rows, along_row, combined
from relax_egraph.lower.schedule.scheduled import Scheduled, assemble
from relax_egraph.lower.schedule.shares import cheapest_softmax
from relax_egraph.lower.schedule.stages import Axis, Stage, runs
from relax_egraph.tir.expr import Buffer, BufferLoad, TirExpr, TirVar
from relax_egraph.tir.rewrite import rewrite, substitute_stmt
from relax_egraph.tir.stmt import For, PrimFunc, Stmt, Store, TirBlock, seq

ELEMENTS = 1 << 16
"""The maximal elements of the rows of a strip, which fit the second-level cache."""

MOST_COLUMNS = 1 << 11
"""The maximal columns of a strip, whose local rows fit the first-level cache."""


APART = 1 << 9
"""A multiple of columns at which rows collide in the second-level cache."""

FAR = 1 << 8
"""The minimal columns of a strip in that case: longer parts of each row."""


def apply(function: PrimFunc, stages: Sequence[Stage]) -> Scheduled | None:
    """The schedule of `function` if its stages share their last axes and reduce others."""
    stages = cheapest_softmax(inline(stages, function.outputs, hoist=True))
    if len(stages) < 2 or not any(s.reduction for s in stages):
        return None
    names = Names.beside(function)
    columns = _columns(stages, names)
    if columns is None:
        return None
    located = _relocated(columns, function.outputs)
    local = tuple(s.buffer for s in located if s.buffer.scope == "local")
    body = seq(*(_pass(p, columns, names) for p in runs(located, _joins)))
    block = TirBlock("strip", (), body, allocs=local)
    nest = parallel((*columns.lead, *columns.strips), block)
    return assemble(function, "columns", [nest])


@dataclass(frozen=True, slots=True)
class _Columns:
    """Stages in common loops: over `lead`, over `strips`, and along the `count` columns of a strip.

    `place` is the variable of a column in its strip, below `width`; the axes of `stages` are the
    remaining ones.
    """

    stages: tuple[Stage, ...]
    lead: tuple[Axis, ...]
    strips: tuple[Axis, ...]
    place: TirVar
    count: TirExpr
    width: int


def _columns(stages: Sequence[Stage], names: Names) -> _Columns | None:
    """`stages` in loops over their shared axes; ``None`` if they do not run along columns."""
    fewest = min(len(s.axes) for s in stages)
    num_last = _shared(stages, [-k for k in range(1, fewest + 1)])
    if not num_last:
        return None
    lead = _shared(stages, range(fewest - num_last))
    axes = stages[0].axes
    over: list[Stage] = []
    for s in stages:
        ends = (*s.axes[:lead], *s.axes[len(s.axes) - num_last :])
        same = (*axes[:lead], *axes[len(axes) - num_last :])
        to: dict[TirVar, TirExpr] = {a.var: b.var for a, b in zip(ends, same, strict=True)}
        middle = s.axes[lead : len(s.axes) - num_last]
        to |= {a.var: ZERO for a in middle if a.extent == 1}
        over.append(replace(bound(s, to), axes=tuple(a for a in middle if a.extent != 1)))
    order = collapse(axes[len(axes) - num_last :], over)
    if len(order.axes) != 1:
        return None
    (column,) = order.axes
    over = [bound(s, order.values) for s in over]
    if not all(along_row(s, column, s.reduction.axes[-1]) for s in over if s.reduction):
        return None
    around_strips, renamed = names.renamed([a for a in axes[:lead] if a.extent != 1], "i")
    renamed |= {a.var: ZERO for a in axes[:lead] if a.extent == 1}
    width = _width(over, column.extent)
    place, strips = names.var("j"), cut(column.extent, width, "c", names)
    at = {**renamed, column.var: strips.start + place}
    moved = tuple(bound(s, at) for s in over)
    return _Columns(moved, around_strips, strips.blocks, place, strips.count, width)


def _shared(stages: Sequence[Stage], places: Sequence[int]) -> int:
    """The number of axes `places` whose axes all stages share, iteration by iteration."""
    for number, k in enumerate(places):
        for s in stages:
            if not dims.equal(s.axes[k].extent, stages[0].axes[k].extent):
                return number
            reads = [r for other in stages for r in reads_of(s, other.buffer)]
            if any(r.indices[k] != s.axes[k].var and s.axes[k].extent != 1 for r in reads):
                return number
    return len(places)


def _width(stages: Sequence[Stage], columns: Dim) -> int:
    """The columns of a strip: whole vectors, and the fewer the more rows there are."""
    if not isinstance(columns, int):
        return WHOLE
    sizes = [dims.product([a.extent for a in s.all_axes]) for s in stages]
    most = max((n for n in sizes if isinstance(n, int)), default=1)
    width = min(MOST_COLUMNS, ELEMENTS // max(most, 1) // WHOLE * WHOLE)
    return min(columns, max(width, FAR if columns % APART == 0 else WHOLE))


# --- the buffers of intermediates -----------------------------------------------------------


def _relocated(columns: _Columns, outputs: Sequence[Buffer]) -> list[Stage]:
    """The stages, with local rows for values of columns.

    A value for each element is stored in an output that overwrites it later, if there is one.
    """
    homes: dict[int, Buffer] = {}
    lent: set[int] = set()
    for number, s in enumerate(columns.stages):
        if any(s.buffer is b for b in outputs):
            continue
        if not s.axes:
            homes[id(s.buffer)] = Buffer(s.buffer.name, (columns.width,), s.buffer.dtype, "local")
        elif (lender := _lender(columns.stages, number, outputs, lent)) is not None:
            lent.add(id(lender))
            homes[id(s.buffer)] = lender

    def at_home(e: TirExpr) -> TirExpr:
        if not isinstance(e, BufferLoad) or id(e.buffer) not in homes:
            return e
        home = homes[id(e.buffer)]
        return BufferLoad(home, (columns.place,) if home.scope == "local" else e.indices)

    result: list[Stage] = []
    for s in columns.stages:
        target = at_home(BufferLoad(s.buffer, s.indices))
        assert isinstance(target, BufferLoad)
        value = rewrite(s.value, at_home)
        result.append(replace(s, buffer=target.buffer, indices=target.indices, value=value))
    return result


def _lender(
    stages: Sequence[Stage], number: int, outputs: Sequence[Buffer], lent: set[int]
) -> Buffer | None:
    """An output whose stage is the last to read stage `number`, element by element."""
    stage = stages[number]
    last = max((k for k, s in enumerate(stages) if s.reads(stage.buffer)), default=number)
    user = stages[last]
    own = _along(stage, user)
    if (
        last > number
        and any(user.buffer is b for b in outputs)
        and id(user.buffer) not in lent
        and own is not None
        and not user.reduction
        and user.buffer.dtype == stage.buffer.dtype
        and own.indices == user.indices
        and all(r.indices == user.indices for r in reads_of(user, stage.buffer))
    ):
        return user.buffer
    return None


def _along(stage: Stage, other: Stage) -> Stage | None:
    """`stage` over the axes of `other`, if they have equal extents."""
    own, theirs = stage.all_axes, other.all_axes
    if [a.extent for a in own] != [a.extent for a in theirs]:
        return None
    return bound(stage, {a.var: b.var for a, b in zip(own, theirs, strict=True)})


# --- loops ----------------------------------------------------------------------------------


def _joins(stage: Stage, earlier: Sequence[Stage]) -> bool:
    """Whether `stage` can run in the loop of `earlier`; a sum is complete only after the loop."""
    moved = [_along(other, stage) for other in earlier]
    if len(stage.all_axes) != 1:
        return False
    for other in moved:
        if other is None or (other.reduction and stage.reads(other.buffer)):
            return False
        reads, read = reads_of(stage, other.buffer), reads_of(other, stage.buffer)
        if any(r.indices != other.indices for r in reads):
            return False
        if any(r.indices != stage.indices for r in read):
            return False
        if other.buffer is stage.buffer:
            return False
    return True


def _pass(stages: Sequence[Stage], columns: _Columns, names: Names) -> Stmt:
    head, *others = stages
    if head.reduction and not others:
        axes, renamed = names.renamed(head.axes, "i")
        stage, over = bound(head, dict(renamed)), head.reduction.axes
        row = accumulate_rows([stage], head.reduction, over, columns.place, columns.count, names)
        return around(axes, row)
    axes, _ = names.renamed(head.all_axes, "k")
    before: list[Stmt] = []
    inside: list[Stmt] = []
    for s in stages:
        own: dict[TirVar, TirExpr] = {a.var: b.var for a, b in zip(s.all_axes, axes, strict=True)}
        s = bound(s, own)
        if s.reduction:
            init = Store(s.buffer, s.indices, s.reduction.init)
            before.append(_along_strip(init, columns, names))
            inside.append(combined(s, s.reduction, s.buffer, s.indices))
        else:
            inside.append(Store(s.buffer, s.indices, s.value))
    return seq(*before, around(axes, _along_strip(seq(*inside), columns, names)))


def _along_strip(body: Stmt, columns: _Columns, names: Names) -> Stmt:
    own = names.var("j")
    line = substitute_stmt(body, {columns.place: own})
    return For(own, columns.count, "vectorized", line)
