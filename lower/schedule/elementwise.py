"""Elementwise chains: one contiguous nest for all results of one shape."""

from collections.abc import Sequence

from relax_egraph.lower.schedule.inline import inline, reads_of
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.pieces import piecewise_loops
from relax_egraph.lower.schedule.scheduled import Scheduled, assemble
from relax_egraph.lower.schedule.stages import Stage, runs
from relax_egraph.lower.schedule.streaming import streaming
from relax_egraph.tir.analysis import EXPENSIVE, work
from relax_egraph.tir.stmt import PrimFunc


def apply(function: PrimFunc, stages: Sequence[Stage]) -> Scheduled | None:
    """The schedule of `function` if no stage reduces; intermediates are inlined.

    An expensive intermediate with several uses is stored.
    """
    if any(s.reduction for s in stages):
        return None
    names = Names.beside(function)
    merged = inline(stages, function.outputs)
    nests = [piecewise_loops(nest, names, "parallel") for nest in together(merged)]
    ahead = sum(work(s.value) for s in merged) >= EXPENSIVE
    return streaming(assemble(function, "elementwise", nests), merged, ahead=ahead)


def together(stages: Sequence[Stage]) -> list[list[Stage]]:
    """Runs of stages that one nest can compute: of one shape, with reads at equal indices only."""
    return runs(stages, _joins)


def _joins(stage: Stage, run: Sequence[Stage]) -> bool:
    return stage.axes == run[0].axes and all(
        load.indices == other.indices for other in run for load in reads_of(stage, other.buffer)
    )
