"""Which heads run together: that read the same keys, or whose keys lie side by side."""

from dataclasses import dataclass, replace

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.lower.schedule.attention.match import Attention
from relax_egraph.lower.schedule.attention.parts import Values
from relax_egraph.lower.schedule.index import steps
from relax_egraph.lower.schedule.product import bound_load
from relax_egraph.lower.schedule.stages import Axis
from relax_egraph.tir.affine import dim_of
from relax_egraph.tir.expr import Binary, BufferLoad, TirExpr, TirVar
from relax_egraph.tir.rewrite import nodes, rewrite, variables

MOST_HEADS = 32
"""Heads of the query that run together: there is room for the scores of each."""

MOST_TOGETHER = 16
"""Heads of keys that lie side by side and run together, so that memory is read in order.

Of 4096 keys of 12 heads, each head by itself reads at 27 GB/s, all together at 35 of 44.
"""


@dataclass(frozen=True, slots=True)
class Heads:
    """Heads along `axis`: `sharing` of the query share one of the keys, `together` of these a task.

    Where the heads of the keys are `count`, there are ``count / together`` tasks.  `keys` and
    `values` are those of the head of the keys whose number the variable of `axis` stands for.
    """

    axis: Axis | None
    count: Dim
    sharing: int
    together: int
    keys: BufferLoad
    values: BufferLoad

    @property
    def tasks(self) -> Dim:
        """The number of tasks."""
        return dims.floordiv(self.count, self.together)

    @property
    def most(self) -> int:
        """How many heads of the query a task has."""
        return self.sharing * self.together

    def at(self, head: TirExpr, task: Values) -> Values:
        """What variables are for a head of the keys in a task, by the values for the task."""
        if self.axis is None:
            return task
        return {**task, self.axis.var: task[self.axis.var] * self.together + head}


def heads_of(p: Attention) -> tuple[Heads, ...]:
    """The heads along one axis of the batch, for each of the runs of keys: as suits the longest."""
    first, *others = (_heads(run) for run in p.runs)
    if any(
        (h.axis, h.count, h.sharing) != (first.axis, first.count, first.sharing) for h in others
    ):
        return tuple(Heads(None, 1, 1, 1, run.keys, run.values) for run in p.runs)
    return (first, *(replace(h, together=first.together) for h in others))


def _heads(p: Attention) -> Heads:
    """The heads along the innermost axis of the batch that shares keys, or lies within a key."""
    for axis in reversed(p.batch):
        for size in _shares(p, axis):
            shared = TirVar("head")
            back: Values = {shared: axis.var}
            keys, values = (_by_head(x, axis.var, size, shared) for x in (p.keys, p.values))
            if axis.var not in variables(keys) | variables(values):
                keys, values = bound_load(keys, back), bound_load(values, back)
                return _together(p, axis, dims.floordiv(axis.extent, size), size, keys, values)
    for axis in reversed(p.batch):
        found = _together(p, axis, axis.extent, 1, p.keys, p.values)
        if found.together > 1:
            return found
    return Heads(None, 1, 1, 1, p.keys, p.values)


def _together(
    p: Attention, axis: Axis, count: Dim, sharing: int, keys: BufferLoad, values: BufferLoad
) -> Heads:
    moves = [steps(x.buffer, x.indices, (axis.var, p.key.var)) for x in (keys, values)]
    beside = all(
        m and isinstance(m[0], int) and isinstance(m[1], int) and 0 < m[0] < m[1] for m in moves
    )
    together = 1
    if beside and isinstance(count, int):
        most = min(MOST_TOGETHER, MOST_HEADS // sharing)
        together = max(n for n in range(1, most + 1) if count % n == 0)
    return Heads(axis, count, sharing, together, keys, values)


def _shares(p: Attention, axis: Axis) -> list[int]:
    """How many along `axis` may read the same: what indices divide by, or all there are."""
    found = {
        dim_of(n.b)
        for load in (p.keys, p.values)
        for n in nodes(load)
        if isinstance(n, Binary) and n.kind == "//" and n.a is axis.var
    }
    return [s for s in found or {axis.extent} if isinstance(s, int) and 1 < s <= MOST_HEADS]


def _by_head(load: BufferLoad, head: TirVar, size: int, shared: TirVar) -> BufferLoad:
    """`load` with `shared` for ``head // size``."""

    def change(e: TirExpr) -> TirExpr:
        match e:
            case Binary(kind="//", a=a, b=b) if a is head and dim_of(b) == size:
                return shared
            case _:
                return e

    changed = rewrite(load, change)
    assert isinstance(changed, BufferLoad)
    return changed
