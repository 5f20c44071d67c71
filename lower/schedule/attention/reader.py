"""Writes out what stages compute, down to inputs and to the reductions in between."""

from collections.abc import Sequence

from relax_egraph.ir import dims
from relax_egraph.lower.schedule.attention.joins import is_moved
from relax_egraph.lower.schedule.loops import ZERO
from relax_egraph.lower.schedule.stages import Axis, Combine, Stage
from relax_egraph.tir.analysis import work
from relax_egraph.tir.expr import Buffer, BufferLoad, Imm, TirExpr, TirVar
from relax_egraph.tir.rewrite import loads, rewrite, substitute


class Reader:
    """The stages of a function, by what they fill."""

    def __init__(self, stages: Sequence[Stage]) -> None:
        self.stages = {s.buffer: s for s in stages}
        self.last = stages[-1]
        self.unit: dict[TirVar, TirExpr] = {a.var: ZERO for a in self.last.axes if a.extent == 1}
        self._chained: set[Buffer] = set()
        for s in stages:
            if s.reduction or any(load.buffer in self._chained for load in loads(s.value)):
                self._chained.add(s.buffer)

    def is_chained(self, load: BufferLoad) -> bool:
        """Whether `load` reads a reduction, or what is computed of one."""
        return load.buffer in self._chained

    def written_out(self, value: TirExpr) -> TirExpr:
        """`value` with elements replaced by what they are, where that is cheap or depends on sums.

        Axes of the last stage that have one element are at 0.
        """

        def change(e: TirExpr) -> TirExpr:
            stage = self.stages.get(e.buffer) if isinstance(e, BufferLoad) else None
            if stage is None or stage.reduction is not None:
                return e
            is_free = is_moved(stage.value) or work(stage.value) == 0
            if stage.buffer not in self._chained and not is_free:
                return e
            assert isinstance(e, BufferLoad)
            at = {a.var: i for a, i in zip(stage.axes, e.indices, strict=True)}
            return self.written_out(substitute(stage.value, at))

        return rewrite(substitute(value, self.unit), change)

    def reduced(
        self, load: BufferLoad, combine: Combine, init: float, over: Axis
    ) -> TirExpr | None:
        """What `load` is the reduction of, over `over`; ``None`` if it is no such reduction."""
        stage = self.stages.get(load.buffer)
        if stage is None or stage.reduction is None or len(stage.reduction.axes) != 1:
            return None
        (own,) = stage.reduction.axes
        begin = stage.reduction.init
        if stage.reduction.combine != combine or not isinstance(begin, Imm) or begin.value != init:
            return None
        if not dims.equal(own.extent, over.extent):
            return None
        at = {a.var: i for a, i in zip(stage.axes, load.indices, strict=True)}
        return self.written_out(substitute(stage.value, {**at, own.var: over.var}))

    def needed(self, reads: Sequence[BufferLoad]) -> tuple[Stage, ...] | None:
        """The stages to compute for `reads`, in order; ``None`` if one is computed of a sum."""
        wanted = {load.buffer for load in reads}
        for stage in reversed(self.stages.values()):
            if stage.buffer in wanted:
                wanted.update(load.buffer for load in loads(stage.value))
        if not wanted.isdisjoint(self._chained):
            return None
        return tuple(s for s in self.stages.values() if s.buffer in wanted)
