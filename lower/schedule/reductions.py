"""Reductions as loops: the innermost axis, and the place of accumulation."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, reduce

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.lower.schedule.cut import cut
from relax_egraph.lower.schedule.index import steps
from relax_egraph.lower.schedule.loops import (
    NARROW,
    WHOLE,
    ZERO,
    around,
    bound,
    collapse,
    store_loops,
)
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.stages import Axis, Reduction, Stage
from relax_egraph.tir.analysis import EXPENSIVE, work
from relax_egraph.tir.expr import Binary, Buffer, BufferLoad, Imm, TirExpr, TirVar, from_dim
from relax_egraph.tir.rewrite import loads, substitute, substitute_stmt, variables
from relax_egraph.tir.stmt import For, LoopKind, Stmt, Store, TirBlock, seq

COLUMNS = 1 << 12
"""The elements of a row of results that accumulate together in the first-level cache."""

FEWEST_COLUMNS = 256
"""The minimal columns of a thread's strip of results: a KiB of each visited row."""

STRIPS = 8
"""The strips of results, unless they become too narrow: several for each thread."""

ROWS = 4
"""The rows of results that accumulate together if they share reads."""

FEW = 4
"""The maximal terms of places from a table that are combined at once, vector by vector."""

TOGETHER = 8
"""The rows that are combined before a row of results is read and written."""


def combined(stage: Stage, reduction: Reduction, place: Buffer, at: tuple[TirExpr, ...]) -> Store:
    """``place[at] = combine(place[at], value)``."""
    return Store(place, at, Binary(reduction.combine, BufferLoad(place, at), stage.value))


def reduction_loops(
    stage: Stage, reduction: Reduction, names: Names, outer: LoopKind = "serial"
) -> Stmt:
    """The loops of a reduction, with the axis of contiguous operands innermost.

    If that is a reduced axis, each element accumulates in a local scalar; if it is the last spatial
    axis, a row of the result accumulates in place.  The other spatial loops are of kind `outer`.
    """
    spatial = collapse(stage.axes, [stage])
    reduced = collapse(reduction.axes, [replace(stage, indices=(ZERO,) * len(stage.indices))])
    axes, renamed = names.renamed(spatial.axes, "i")
    over, renamed_over = names.renamed(reduced.axes, "k")
    values = {**spatial.values, **reduced.values, **renamed, **renamed_over}
    stage = bound(stage, values)
    if (terms := _few_terms(stage, reduction, axes, over)) is not None:
        return store_loops((terms,), names, outer)
    if axes and over and along_row(stage, axes[-1], over[-1]):
        return _accumulate_rows(stage, reduction, axes, over, names, outer)
    return _accumulate_scalar(stage, reduction, axes, over, outer)


def _few_terms(
    stage: Stage, reduction: Reduction, axes: Sequence[Axis], over: Sequence[Axis]
) -> Stage | None:
    """`stage` as a map that combines a few terms, if its own axis is long and a table is read."""
    count = over[0].extent if len(over) == 1 else None
    if not axes or _is_narrow(axes[-1]) or not isinstance(count, int) or count > FEW:
        return None
    if not any(loads(i) for r in loads(stage.value) for i in r.indices):
        return None
    terms = [substitute(stage.value, {over[0].var: Imm(k, "int64")}) for k in range(count)]
    value = reduce(partial(Binary, reduction.combine), terms, reduction.init)
    return replace(stage, axes=tuple(axes), value=value, reduction=None)


def along_row(stage: Stage, last: Axis, reduced: Axis) -> bool:
    """Whether reads of the value are contiguous along `last` rather than along `reduced`."""
    reads = [steps(r.buffer, r.indices, (last.var, reduced.var)) for r in loads(stage.value)]
    strided = [sum(r is None or r[k] not in (0, 1) for r in reads) for k in (0, 1)]
    if strided[0] != strided[1]:
        return strided[0] < strided[1]
    contiguous = [sum(r is not None and r[k] == 1 for r in reads) for k in (0, 1)]
    if contiguous[0] and _is_narrow(reduced) and not _is_narrow(last):
        return True
    return contiguous[0] > contiguous[1]


def _is_narrow(axis: Axis) -> bool:
    """Whether a loop over `axis` is shorter than a vector, such as the taps of a window."""
    return isinstance(axis.extent, int) and axis.extent < NARROW


def _accumulate_rows(
    stage: Stage,
    reduction: Reduction,
    axes: tuple[Axis, ...],
    over: tuple[Axis, ...],
    names: Names,
    outer: LoopKind,
) -> Stmt:
    *around_rows, last = axes
    extent = from_dim(last.extent)
    if outer == "parallel" and not around_rows:
        strips = cut(last.extent, _strip(last.extent), "c", names)
        stage = bound(stage, {last.var: strips.start + last.var})
        around_rows, extent = [*strips.blocks], strips.count

    def rows(stages: Sequence[Stage]) -> Stmt:
        return accumulate_rows(stages, reduction, over, last.var, extent, names)

    if len(axes) == 1 or not _shares_reads(stage, around_rows[-1]):
        return around(around_rows, rows([stage]), outer, outer)
    *outside, row = around_rows
    blocks = dims.floordiv(row.extent, ROWS)
    done = dims.mul(blocks, ROWS)

    def nest(extent: Dim, places: Callable[[TirExpr], Sequence[TirExpr]]) -> Stmt:
        own, renamed = names.renamed([*outside, Axis(row.var, extent)], "i")
        places_of = places(renamed[row.var])
        moved = [bound(stage, {**renamed, row.var: at}) for at in places_of]
        return around(own, rows(moved), outer, outer)

    together = nest(blocks, lambda i: [i * ROWS + k for k in range(ROWS)])
    remainder = dims.sub(row.extent, done)
    return (
        together
        if remainder == 0
        else seq(together, nest(remainder, lambda i: [i + from_dim(done)]))
    )


def _shares_reads(stage: Stage, row: Axis) -> bool:
    """Whether the values of several rows have some reads in common."""
    if isinstance(row.extent, int) and row.extent < ROWS:
        return False
    moves = {any(row.var in variables(i) for i in r.indices) for r in loads(stage.value)}
    return moves == {False, True} and work(stage.value) < EXPENSIVE


def accumulate_rows(
    stages: Sequence[Stage],
    reduction: Reduction,
    over: Sequence[Axis],
    last: TirVar,
    extent: TirExpr,
    names: Names,
) -> Stmt:
    """Adjacent rows of results, `extent` elements of each along `last`, accumulated in place."""
    over, renamed = names.renamed(over, "k")
    stages = [bound(s, dict(renamed)) for s in stages]
    *outer, inner = over
    cheap = all(work(s.value) < EXPENSIVE for s in stages)
    count = max(1, TOGETHER // len(stages)) if cheap else 1

    def along(row: Sequence[Stmt]) -> Stmt:
        own = names.var("j")
        return For(own, extent, "vectorized", substitute_stmt(seq(*row), {last: own}))

    def add(start: TirExpr, count: int) -> Stmt:
        updates: list[Stmt] = []
        for s in stages:
            terms = [substitute(s.value, {inner.var: start + k}) for k in range(count)]
            value = reduce(lambda sofar, term: Binary(reduction.combine, sofar, term), terms)
            updates.append(combined(replace(s, value=value), reduction, s.buffer, s.indices))
        return along(updates)

    clear = along([Store(s.buffer, s.indices, reduction.init) for s in stages])
    return seq(clear, around(outer, _in_groups(inner, count, add, names)))


def _strip(extent: Dim) -> int:
    """The columns of results that one thread accumulates at a time."""
    if not isinstance(extent, int):
        return FEWEST_COLUMNS * 2
    return min(COLUMNS, max(FEWEST_COLUMNS, -(-extent // STRIPS // WHOLE) * WHOLE))


def _in_groups(axis: Axis, count: int, body: Callable[[TirExpr, int], Stmt], names: Names) -> Stmt:
    """`body` for `count` iterations of `axis` at a time, and for each remaining one."""
    if isinstance(axis.extent, int) and 0 < axis.extent <= count:
        return body(ZERO, axis.extent)
    rounds = dims.floordiv(axis.extent, count)
    done = dims.mul(rounds, count)
    whole = For(axis.var, from_dim(rounds), "serial", body(axis.var * count, count))
    remainder = dims.sub(axis.extent, done)
    if remainder == 0:
        return whole
    rest = names.var("k")
    return seq(whole, For(rest, from_dim(remainder), "serial", body(from_dim(done) + rest, 1)))


def _accumulate_scalar(
    stage: Stage,
    reduction: Reduction,
    axes: tuple[Axis, ...],
    over: tuple[Axis, ...],
    outer: LoopKind,
) -> Stmt:
    if stage.buffer.scope == "local" and not axes:
        init = Store(stage.buffer, stage.indices, reduction.init)
        update = combined(stage, reduction, stage.buffer, stage.indices)
        return seq(init, around(over, update, "vectorized"))
    total = Buffer(f"{stage.buffer.name}_acc", (1,), stage.buffer.dtype, "local")
    body = seq(
        Store(total, (ZERO,), reduction.init),
        around(over, combined(stage, reduction, total, (ZERO,)), "vectorized"),
        Store(stage.buffer, stage.indices, total[0]),
    )
    return around(axes, TirBlock(stage.name, (), body, allocs=(total,)), outer, outer)


def loops(stage: Stage, names: Names, outer: LoopKind = "serial") -> Stmt:
    """The loops of a single `stage`; `outer` is the kind of those with independent iterations."""
    if stage.reduction is None:
        return store_loops((stage,), names, outer)
    return reduction_loops(stage, stage.reduction, names, outer)
