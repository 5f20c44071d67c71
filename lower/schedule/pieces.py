"""Maps with decisions on positions, as a nest for each range in which they are constant.

A padded tensor is a copied body and filled borders; a repeated one is several copies.  The loops
contain no comparisons and no divisions.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.lower.schedule.inline import MOST_NODES
from relax_egraph.lower.schedule.loops import NARROW, ZERO, around, bound, store_loops
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.ranges import borders, decide
from relax_egraph.lower.schedule.stages import Axis, Stage
from relax_egraph.tir.affine import dim_of
from relax_egraph.tir.analysis import tree_size
from relax_egraph.tir.expr import Binary, TirExpr, TirVar, from_dim
from relax_egraph.tir.rewrite import loads, nodes
from relax_egraph.tir.simplify import simplify
from relax_egraph.tir.stmt import LoopKind, Stmt, seq


def piecewise_loops(stages: Sequence[Stage], names: Names, outer: LoopKind = "serial") -> Stmt:
    """Injective stages over the axes of the first one, like `store_loops`, in pieces."""
    long_axes = tuple(a for a in stages[0].axes if a.extent != 1)
    unit: dict[TirVar, TirExpr] = {a.var: ZERO for a in stages[0].axes if a.extent == 1}
    return _pieces(
        _split_axes([_over(s, long_axes, unit) for s in stages]), names, outer, MOST_NODES
    )


def _over(stage: Stage, axes: Sequence[Axis], values: Mapping[TirVar, TirExpr]) -> Stage:
    return replace(bound(stage, dict(values)), axes=tuple(axes))


# --- divisions ----------------------------------------------------------------------------


def _split_axes(stages: Sequence[Stage]) -> Sequence[Stage]:
    """`stages` with two axes for each divided one: ``q·d + r`` for ``i // d, i % d``."""
    axes = stages[0].axes
    for place, axis in enumerate(axes):
        size = next(_divisors(stages, axis, is_last=axis is axes[-1]), None)
        if size is None:
            continue
        count = dims.floordiv(axis.extent, size)
        many, one = TirVar(f"{axis.var.name}_o"), TirVar(f"{axis.var.name}_i")
        parts = (Axis(many, count), Axis(one, size))
        new = (*axes[:place], *parts, *axes[place + 1 :])
        extents = {a.var: a.extent for a in new}
        whole: TirExpr = many * from_dim(size) + one
        split = [_over(s, new, {axis.var: whole}) for s in stages]
        return _split_axes([replace(s, value=simplify(s.value, extents)) for s in split])
    return stages


def _divisors(stages: Sequence[Stage], axis: Axis, *, is_last: bool) -> Iterator[Dim]:
    """The divisors of `axis` in reads that divide its extent; for the last axis, whole vectors."""
    for stage in stages:
        for index in (i for load in loads(stage.value) for i in load.indices):
            for e in nodes(index):
                if not isinstance(e, Binary) or e.kind not in ("//", "%") or e.a is not axis.var:
                    continue
                size = dim_of(e.b)
                if size is None or size == axis.extent or not dims.divides(size, axis.extent):
                    continue
                if not (is_last and isinstance(size, int) and size < NARROW):
                    yield size


# --- conditions ---------------------------------------------------------------------------


def _pieces(stages: Sequence[Stage], names: Names, outer: LoopKind, room: int) -> Stmt:
    """The loops of `stages`, in as many pieces as `room` for their nodes allows."""
    axes = stages[0].axes
    for place, axis in enumerate(axes):
        is_last = place == len(axes) - 1
        if is_last and isinstance(axis.extent, int) and axis.extent <= NARROW:
            break
        cuts = borders([s.value for s in stages], axis.var, axis.extent)
        share = room // (len(cuts) + 1)
        if not cuts or sum(tree_size(s.value) for s in stages) > share:
            continue
        if is_last and place:
            rows, renamed = names.renamed(axes[:-1], "i")
            outer_extents = {a.var: a.extent for a in rows}
            line = [_over(s, (axis,), renamed) for s in stages]
            parts = _cut(line, 0, cuts, outer_extents)
            body = seq(*(_pieces(part, names, "serial", share) for part in parts))
            return around(rows, body, outer, outer)
        parts = _cut(stages, place, cuts, {})
        return seq(*(_pieces(part, names, outer, share) for part in parts))
    return store_loops(stages, names, outer)


def _cut(
    stages: Sequence[Stage], place: int, cuts: Sequence[Dim], outer_extents: Mapping[TirVar, Dim]
) -> Iterator[Sequence[Stage]]:
    """`stages` over each range of the axis at `place`; `outer_extents` are around it."""
    axes = stages[0].axes
    axis = axes[place]
    for start, end in pairwise((0, *cuts, axis.extent)):
        size = dims.sub(end, start)
        own = Axis(TirVar(axis.var.name), size)
        new = (*axes[:place], *(() if size == 1 else (own,)), *axes[place + 1 :])
        extents = {**outer_extents, **{a.var: a.extent for a in new}}
        at = from_dim(start) if size == 1 else own.var + from_dim(start)
        moved = [_over(s, new, {axis.var: at}) for s in stages]
        yield [_decide(s, extents) for s in moved]


def _decide(stage: Stage, extents: Mapping[TirVar, Dim]) -> Stage:
    indices = tuple(decide(i, extents) for i in stage.indices)
    return replace(stage, indices=indices, value=decide(stage.value, extents))
