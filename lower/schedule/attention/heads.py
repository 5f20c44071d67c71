"""Heads that run together: they share keys, or their keys are adjacent in memory."""

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
"""The maximal heads of the query that run together, limited by memory for their scores."""

MOST_TOGETHER = 16
"""The maximal adjacent heads of keys that run together, so that memory is read sequentially.

With 4096 keys of 12 heads, single heads read at 27 GB/s, all together at 35 of 44 GB/s.
"""


@dataclass(frozen=True, slots=True)
class Heads:
    """Heads along `axis`: `sharing` of the query share one of the keys, `together` of these a task.

    For `count` heads of the keys there are ``count / together`` tasks.  `keys` and `values` are the
    loads for the head of the keys that the variable of `axis` numbers.
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
        """The number of heads of the query in a task."""
        return self.sharing * self.together

    def at(self, head: TirExpr, task: Values) -> Values:
        """The values of variables for a head of the keys in a task."""
        if self.axis is None:
            return task
        return {**task, self.axis.var: task[self.axis.var] * self.together + head}


def heads_of(p: Attention) -> tuple[Heads, ...]:
    """The heads along one axis of the batch, for each run of keys, as suits the longest run."""
    first, *others = (_heads(run) for run in p.runs)
    if any(
        (h.axis, h.count, h.sharing) != (first.axis, first.count, first.sharing) for h in others
    ):
        return tuple(Heads(None, 1, 1, 1, run.keys, run.values) for run in p.runs)
    return (first, *(replace(h, together=first.together) for h in others))


def _heads(p: Attention) -> Heads:
    """The heads along the innermost batch axis that shares keys, or has a stride within a key."""
    for axis in reversed(p.batch):
        for size in _shares(p, axis):
            shared = TirVar("head")
            back: Values = {shared: axis.var}
            keys, values = (_by_head(x, axis.var, size, shared) for x in (p.keys, p.values))
            if axis.var not in variables(keys) | variables(values):
                keys, values = bound_load(keys, back), bound_load(values, back)
                return _together(p, axis, dims.floordiv(axis.extent, size), size, keys, values)
    for axis in reversed(p.batch):
        heads = _together(p, axis, axis.extent, 1, p.keys, p.values)
        if heads.together > 1:
            return heads
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
    """The numbers of heads along `axis` that may share keys: divisors in indices, or the extent."""
    divisors = {
        dim_of(n.b)
        for load in (p.keys, p.values)
        for n in nodes(load)
        if isinstance(n, Binary) and n.kind == "//" and n.a is axis.var
    }
    return [s for s in divisors or {axis.extent} if isinstance(s, int) and 1 < s <= MOST_HEADS]


def _by_head(load: BufferLoad, head: TirVar, size: int, shared: TirVar) -> BufferLoad:
    """`load` with `shared` in place of ``head // size``."""

    def change(e: TirExpr) -> TirExpr:
        match e:
            case Binary(kind="//", a=a, b=b) if a is head and dim_of(b) == size:
                return shared
            case _:
                return e

    result = rewrite(load, change)
    assert isinstance(result, BufferLoad)
    return result
