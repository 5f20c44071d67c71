"""Loops of injective stages: collapsed axes, and the vectorized loop.

Axes of extent 1 get no loop.  Neighbouring axes become one loop if every access is linear in the
collapsed index: ``x[0, f]`` for ``x[i, j]`` with ``f`` over both.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.lower.schedule.cut import cut
from relax_egraph.lower.schedule.index import steps
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.stages import Axis, Stage
from relax_egraph.tir.expr import (
    Buffer,
    BufferLoad,
    Imm,
    TirExpr,
    TirVar,
    from_dim,
)
from relax_egraph.tir.rewrite import loads, operands, rewrite, substitute, variables
from relax_egraph.tir.stmt import For, LoopKind, Stmt, Store, seq

ZERO = Imm(0, "int64")

CHUNK = 1 << 14
"""The iterations of a long loop that are one task of a thread."""

WHOLE = 64
"""A multiple of the lanes of vectors of any width."""

NARROW = 16
"""The minimal iterations of a vectorized loop, if another loop can be vectorized instead."""

Access = tuple[Buffer, tuple[TirExpr, ...]]
"""A buffer, and the indices of a read or write."""


def accesses_of(stages: Sequence[Stage]) -> list[Access]:
    """All reads and writes of `stages`."""
    accesses: list[Access] = [(s.buffer, s.indices) for s in stages]
    for s in stages:
        accesses.extend((load.buffer, load.indices) for load in loads(s.value))
    return accesses


def around(
    axes: Sequence[Axis], body: Stmt, kind: LoopKind = "serial", outer: LoopKind = "serial"
) -> Stmt:
    """`body` in loops over `axes`, the innermost of `kind`, the others of kind `outer`."""
    for axis in reversed(axes):
        body = For(axis.var, from_dim(axis.extent), kind, body)
        kind = outer
    return body


def parallel(axes: Sequence[Axis], body: Stmt) -> Stmt:
    """`body` in loops over `axes` with independent iterations."""
    return around(axes, body, "parallel", "parallel")


@dataclass(frozen=True, slots=True)
class Collapse:
    """Axes after collapsing, and the values of the old variables."""

    axes: tuple[Axis, ...]
    values: dict[TirVar, TirExpr]


def collapse(axes: Sequence[Axis], stages: Sequence[Stage]) -> Collapse:
    """`axes` without those of extent 1, and with neighbours merged if all accesses stay linear."""
    long_axes = [a for a in axes if a.extent != 1]
    values: dict[TirVar, TirExpr] = {a.var: ZERO for a in axes if a.extent == 1}
    fixed = frozenset[TirVar]().union(*(_computed_with(s.value) for s in stages))
    variables = [a.var for a in long_axes]
    moves = [steps(b, at, variables) for b, at in accesses_of(stages)]
    merged: list[Axis] = []
    for place in reversed(range(len(long_axes))):
        outer = long_axes[place]
        if merged and not {outer.var, merged[0].var} & fixed:
            inner = merged[0]
            at = variables.index(inner.var)
            if all(m and m[place] == dims.mul(inner.extent, m[at]) for m in moves):
                merged[0] = Axis(inner.var, dims.mul(outer.extent, inner.extent))
                values[outer.var] = ZERO
                continue
        merged.insert(0, outer)
    return Collapse(tuple(merged), values)


def _computed_with(value: TirExpr) -> frozenset[TirVar]:
    """The variables that are used beside addressing."""
    if isinstance(value, BufferLoad):
        return frozenset()
    if isinstance(value, TirVar):
        return frozenset({value})
    return frozenset[TirVar]().union(*map(_computed_with, operands(value)))


def bound(stage: Stage, values: dict[TirVar, TirExpr]) -> Stage:
    """`stage` with variables replaced in its indices and value, but with its axes.

    An index of a merged axis becomes a literal 0.
    """
    merged = {v: ZERO for v, value in values.items() if value == ZERO}

    def moved(e: TirExpr) -> TirExpr:
        if not isinstance(e, BufferLoad):
            return e
        indices = _run_on(e.buffer, e.indices, merged)
        is_same = all(a is b for a, b in zip(indices, e.indices, strict=True))
        return e if is_same else BufferLoad(e.buffer, indices)

    indices = _run_on(stage.buffer, stage.indices, merged)
    return replace(
        stage,
        indices=tuple(substitute(i, values) for i in indices),
        value=substitute(rewrite(stage.value, moved), values),
    )


def _run_on(
    buffer: Buffer, indices: tuple[TirExpr, ...], merged: Mapping[TirVar, TirExpr]
) -> tuple[TirExpr, ...]:
    """`indices` of merged axes, moved to the next index, which may exceed its axis.

    After a literal 0 an index runs over both axes: if the axes of ``x[i + n, j]`` are merged, ``i``
    is replaced, and the result is ``x[0, n * d + j]``.
    """
    placed = list(indices)
    carries = False
    for k, index in enumerate(placed[:-1]):
        carries = carries or any(v in merged for v in variables(index))
        rest = substitute(placed[k], merged)
        carries = carries and not variables(rest)
        if carries and rest != ZERO:
            placed[k] = ZERO
            placed[k + 1] = rest * from_dim(buffer.shape[k + 1]) + placed[k + 1]
    return tuple(placed)


def store_loops(stages: Sequence[Stage], names: Names, outer: LoopKind = "serial") -> Stmt:
    """Injective stages over the axes of the first one, in one nest with a vectorized last loop.

    The stages have the variables of the axes in common.  Outer loops are of kind `outer`; if that
    is ``parallel``, a single long loop is cut into chunks.
    """
    order = collapse(stages[0].axes, stages)
    axes, values = names.renamed(order.axes, "i")
    extents = [from_dim(a.extent) for a in axes]
    if outer == "parallel" and len(axes) == 1 and may_exceed(axes[0], CHUNK):
        (line,) = axes
        chunks = cut(line.extent, _chunk(line.extent), "c", names)
        values = {old: chunks.start + line.var for old in values}
        axes = (*chunks.blocks, line)
        extents = [*(from_dim(a.extent) for a in chunks.blocks), chunks.count]
    moved = [bound(s, {**order.values, **values}) for s in stages]
    body = seq(*(Store(s.buffer, s.indices, s.value) for s in moved))
    kind: LoopKind = "vectorized"
    for axis, extent in zip(reversed(axes), reversed(extents), strict=True):
        body, kind = For(axis.var, extent, kind, body), outer
    return body


def _chunk(extent: Dim) -> int:
    """The iterations of a chunk: a divisor of the extent, in whole vectors, if possible."""
    sizes = range(CHUNK, CHUNK // 2, -WHOLE)
    even = (s for s in sizes if isinstance(extent, int) and extent % s == 0)
    return next(even, CHUNK)


def may_exceed(axis: Axis, size: int) -> bool:
    """Whether `axis` may have more than `size` iterations."""
    return not isinstance(axis.extent, int) or axis.extent > size
