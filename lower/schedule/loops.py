"""Injective stages as loops: which axes collapse, which loop is vectorized.

An axis of extent 1 gets no loop.  Neighbouring axes become one loop where every access is
linear in the collapsed index: ``x[0, f]`` for ``x[i, j]`` with ``f`` over both.
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
"""How many turns of a long loop are one task for a thread."""

WHOLE = 64
"""So many turns are a whole number of vectors, of any width."""

NARROW = 16
"""A loop of fewer turns than this is not worth vectorizing, if another can be."""

Access = tuple[Buffer, tuple[TirExpr, ...]]
"""A buffer and the indices where it is read or written."""


def accesses_of(stages: Sequence[Stage]) -> list[Access]:
    """Every read and write of `stages`."""
    found: list[Access] = [(s.buffer, s.indices) for s in stages]
    for s in stages:
        found.extend((load.buffer, load.indices) for load in loads(s.value))
    return found


def around(
    axes: Sequence[Axis], body: Stmt, kind: LoopKind = "serial", outer: LoopKind = "serial"
) -> Stmt:
    """`body` in loops over `axes`, the innermost of `kind`, the others of kind `outer`."""
    for axis in reversed(axes):
        body = For(axis.var, from_dim(axis.extent), kind, body)
        kind = outer
    return body


def parallel(axes: Sequence[Axis], body: Stmt) -> Stmt:
    """`body` in loops over `axes`, whose turns do not depend on one another."""
    return around(axes, body, "parallel", "parallel")


@dataclass(frozen=True, slots=True)
class Collapse:
    """Fewer axes over the same elements, and what the old variables are in terms of them."""

    axes: tuple[Axis, ...]
    values: dict[TirVar, TirExpr]


def collapse(axes: Sequence[Axis], stages: Sequence[Stage]) -> Collapse:
    """Drop axes of extent 1 from `axes`, and merge neighbours where that is linear."""
    kept = [a for a in axes if a.extent != 1]
    values: dict[TirVar, TirExpr] = {a.var: ZERO for a in axes if a.extent == 1}
    fixed = frozenset[TirVar]().union(*(_computed_with(s.value) for s in stages))
    variables = [a.var for a in kept]
    moves = [steps(b, at, variables) for b, at in accesses_of(stages)]
    merged: list[Axis] = []
    for place in reversed(range(len(kept))):
        outer = kept[place]
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
    """The variables whose own value is used, beside addressing."""
    if isinstance(value, BufferLoad):
        return frozenset()
    if isinstance(value, TirVar):
        return frozenset({value})
    return frozenset[TirVar]().union(*map(_computed_with, operands(value)))


def bound(stage: Stage, values: dict[TirVar, TirExpr]) -> Stage:
    """`stage` with variables replaced in its indices and value; its axes stay.

    An index of an axis that is gone becomes a literal 0.
    """
    gone = {v: ZERO for v, value in values.items() if value == ZERO}

    def moved(e: TirExpr) -> TirExpr:
        if not isinstance(e, BufferLoad):
            return e
        indices = _run_on(e.buffer, e.indices, gone)
        is_same = all(a is b for a, b in zip(indices, e.indices, strict=True))
        return e if is_same else BufferLoad(e.buffer, indices)

    indices = _run_on(stage.buffer, stage.indices, gone)
    return replace(
        stage,
        indices=tuple(substitute(i, values) for i in indices),
        value=substitute(rewrite(stage.value, moved), values),
    )


def _run_on(
    buffer: Buffer, indices: tuple[TirExpr, ...], gone: Mapping[TirVar, TirExpr]
) -> tuple[TirExpr, ...]:
    """`indices` without what is left of an index when its axis is `gone`.

    It goes to the next index, which after a literal 0 runs on over both axes: where the axes of
    ``x[i + n, j]`` are merged, ``i`` is gone, and this gives ``x[0, n * d + j]``.
    """
    placed = list(indices)
    carries = False
    for k, index in enumerate(placed[:-1]):
        carries = carries or any(v in gone for v in variables(index))
        rest = substitute(placed[k], gone)
        carries = carries and not variables(rest)
        if carries and rest != ZERO:
            placed[k] = ZERO
            placed[k + 1] = rest * from_dim(buffer.shape[k + 1]) + placed[k + 1]
    return tuple(placed)


def store_loops(stages: Sequence[Stage], names: Names, outer: LoopKind = "serial") -> Stmt:
    """Injective stages over the axes of the first, in one nest, the last loop vectorized.

    The stages have the axes' variables in common.  Loops around the last are of kind `outer`; if
    that is ``parallel``, a long loop that would stand alone is cut into chunks.
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
    """How many turns to cut off at a time: all the same number, in whole vectors, if possible."""
    sizes = range(CHUNK, CHUNK // 2, -WHOLE)
    even = (s for s in sizes if isinstance(extent, int) and extent % s == 0)
    return next(even, CHUNK)


def may_exceed(axis: Axis, size: int) -> bool:
    """Whether `axis` has more turns than `size`, as far as is known."""
    return not isinstance(axis.extent, int) or axis.extent > size
