"""Expansion of the values of stages, down to inputs and to the reductions in between."""

from collections.abc import Sequence

from relax_egraph.ir import dims
from relax_egraph.lower.schedule.attention.joins import is_moved
from relax_egraph.lower.schedule.loops import ZERO
from relax_egraph.lower.schedule.stages import Axis, Combine, Stage
from relax_egraph.tir.analysis import work
from relax_egraph.tir.expr import Buffer, BufferLoad, Imm, TirExpr, TirVar
from relax_egraph.tir.rewrite import loads, rewrite, substitute


class Reader:
    """The stages of a function, by the buffer they fill."""

    def __init__(self, stages: Sequence[Stage]) -> None:
        self.stages = {s.buffer: s for s in stages}
        self.last = stages[-1]
        self.unit: dict[TirVar, TirExpr] = {a.var: ZERO for a in self.last.axes if a.extent == 1}
        self._chained: set[Buffer] = set()
        for s in stages:
            if s.reduction or any(load.buffer in self._chained for load in loads(s.value)):
                self._chained.add(s.buffer)

    def is_chained(self, load: BufferLoad) -> bool:
        """Whether `load` reads a reduction, or a value that depends on one."""
        return load.buffer in self._chained

    def expand(self, value: TirExpr) -> TirExpr:
        """`value` with loads expanded if they are cheap or depend on reductions.

        Axes of the last stage with extent 1 are at 0.
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
            return self.expand(substitute(stage.value, at))

        return rewrite(substitute(value, self.unit), change)

    def reduced(
        self, load: BufferLoad, combine: Combine, init: float, over: Axis
    ) -> TirExpr | None:
        """The operand of the reduction that `load` reads; ``None`` if it is another one."""
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
        return self.expand(substitute(stage.value, {**at, own.var: over.var}))

    def needed(self, reads: Sequence[BufferLoad]) -> tuple[Stage, ...] | None:
        """The stages that `reads` depend on, in order; ``None`` if one depends on a reduction."""
        buffers = {load.buffer for load in reads}
        for stage in reversed(self.stages.values()):
            if stage.buffer in buffers:
                buffers.update(load.buffer for load in loads(stage.value))
        if not buffers.isdisjoint(self._chained):
            return None
        return tuple(s for s in self.stages.values() if s.buffer in buffers)
