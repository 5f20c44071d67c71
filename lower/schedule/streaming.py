"""Streamed parameters of scheduled functions, which are traversed once and need no cache."""

from collections.abc import Sequence

from relax_egraph.ir import dims
from relax_egraph.ir.dtypes import TABLE
from relax_egraph.lower.codegen.stream import ATTRIBUTE, LARGE
from relax_egraph.lower.schedule.index import steps
from relax_egraph.lower.schedule.inline import reads_of
from relax_egraph.lower.schedule.scheduled import Scheduled
from relax_egraph.lower.schedule.stages import Stage
from relax_egraph.tir.expr import Buffer
from relax_egraph.tir.rewrite import loads

BEYOND_CACHE = 1 << 20
"""Inputs of fewer bytes than this are in a cache anyway."""


def streaming(scheduled: Scheduled, stages: Sequence[Stage], *, ahead: bool) -> Scheduled:
    """The function `scheduled` from `stages` with the attribute ``streamed``: parameter numbers.

    These are outputs that are computed in order and not read again, and, if prefetching `ahead`
    pays because much is computed between reads, inputs whose elements are each read in one
    iteration.
    """
    function = scheduled.function
    read = {id(load.buffer) for load in loads(function.body)}
    mapped = {id(s.buffer) for s in stages if s.reduction is None} - read
    outputs = [b for b in function.outputs if id(b) in mapped and _may_have(b, LARGE)]
    inputs = [
        b
        for b in function.inputs
        if ahead and _may_have(b, BEYOND_CACHE) and any(_passes(s, b) for s in stages)
    ]
    streamed = {id(b) for b in (*inputs, *outputs)}
    numbers = tuple(k for k, b in enumerate(function.params) if id(b) in streamed)
    return scheduled.with_attrs({ATTRIBUTE: numbers}) if numbers else scheduled


def _may_have(buffer: Buffer, size: int) -> bool:
    """Whether `buffer` may have at least `size` bytes."""
    count = dims.product(buffer.shape)
    return not isinstance(count, int) or count * TABLE[buffer.dtype].bits // 8 >= size


def _passes(stage: Stage, buffer: Buffer) -> bool:
    """Whether `stage` reads the elements of `buffer` in order, each in one iteration."""
    axes = [a for a in stage.all_axes if a.extent != 1]
    turns = dims.product([a.extent for a in axes])
    if not axes or not dims.equal(turns, dims.product(buffer.shape)):
        return False
    moves = [steps(buffer, r.indices, [axes[-1].var]) for r in reads_of(stage, buffer)]
    return (1,) in moves
