"""Inlining of intermediate tensors, where it repeats no expensive work."""

from collections.abc import Sequence
from dataclasses import replace

from relax_egraph.ir import dims
from relax_egraph.lower.schedule.stages import Axis, Stage
from relax_egraph.tir.analysis import EXPENSIVE, tree_size, work
from relax_egraph.tir.expr import Buffer, BufferLoad, TirExpr, TirVar
from relax_egraph.tir.rewrite import loads, rewrite, substitute, variables

MOST_NODES = 2000
"""The maximal size of an inlined expression."""


def inline(
    stages: Sequence[Stage], keep: Sequence[Buffer], *, hoist: bool = False
) -> tuple[Stage, ...]:
    """`stages` with injective ones inlined, except those in `keep` and expensive repeated ones.

    Cheap stages may be repeated; with `hoist` only if each use reads as many elements as there are.
    """
    rest = list(_over_shared_axes(stages))
    for stage in reversed(rest[:]):
        users = [s for s in rest if s.reads(stage.buffer)]
        if stage.reduction or any(stage.buffer is b for b in keep):
            continue
        if not _is_worthwhile(stage, users, hoist):
            continue
        merged = _into(stage, users)
        if any(tree_size(s.value) > MOST_NODES for s in merged):
            continue
        replacements = {id(old): replaced for old, replaced in zip(users, merged, strict=True)}
        rest = [replacements.get(id(s), s) for s in rest if s is not stage]
    return tuple(rest)


def _over_shared_axes(stages: Sequence[Stage]) -> list[Stage]:
    """`stages` with common variables for all stages of the same shape."""
    shared: dict[tuple[dims.Dim, ...], tuple[Axis, ...]] = {}
    result: list[Stage] = []
    for stage in stages:
        axes = shared.setdefault(tuple(a.extent for a in stage.axes), stage.axes)
        new: dict[TirVar, TirExpr] = {
            a.var: b.var for a, b in zip(stage.axes, axes, strict=True) if a is not b
        }
        indices = tuple(substitute(i, new) for i in stage.indices)
        over = replace(stage, axes=axes, indices=indices, value=substitute(stage.value, new))
        result.append(over)
    return result


def _is_worthwhile(stage: Stage, users: Sequence[Stage], hoist: bool) -> bool:
    cost = work(stage.value)
    if cost == 0 or not users:
        return True
    uses = [(user, load.indices) for user in users for load in reads_of(user, stage.buffer)]
    together = all(u.reduction is None and at == stage.indices for u, at in uses)
    once = len({at for _, at in uses}) == 1 and len(users) == 1 and _covers(*uses[0])
    if together or once:
        return True
    if hoist and not all(_covers(user, at) for user, at in uses):
        return False
    return cost < EXPENSIVE


def reads_of(stage: Stage, buffer: Buffer) -> list[BufferLoad]:
    """The reads of `buffer` in the value of `stage`."""
    return [load for load in loads(stage.value) if load.buffer is buffer]


def _covers(user: Stage, indices: tuple[TirExpr, ...]) -> bool:
    """Whether no two iterations of `user` visibly read one element."""
    read = frozenset[TirVar]().union(*map(variables, indices))
    return all(a.var in read for a in user.all_axes if a.extent != 1)


def _into(stage: Stage, users: Sequence[Stage]) -> list[Stage]:
    computed: dict[tuple[TirExpr, ...], TirExpr] = {}

    def change(e: TirExpr) -> TirExpr:
        if not isinstance(e, BufferLoad) or e.buffer is not stage.buffer:
            return e
        if e.indices not in computed:
            at = {a.var: i for a, i in zip(stage.axes, e.indices, strict=True)}
            computed[e.indices] = substitute(stage.value, at)
        return computed[e.indices]

    done: dict[int, tuple[TirExpr, TirExpr]] = {}
    return [replace(s, value=rewrite(s.value, change, done)) for s in users]
