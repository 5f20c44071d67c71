"""Copies of operands to places of their own in a result: one contiguous nest for each."""

from relax_egraph.lower.schedule.loops import collapse, store_loops
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.scheduled import finished
from relax_egraph.lower.schedule.stages import Stage, slice_of
from relax_egraph.tir.rewrite import loads
from relax_egraph.tir.stmt import PrimFunc, Seq

NARROW = 16
"""Fewer elements in a row than this are copied one by one."""


def apply(function: PrimFunc) -> PrimFunc | None:
    """The schedule of `function` if each of its nests stores what it reads of inputs only."""
    nests = function.body.body if isinstance(function.body, Seq) else (function.body,)
    slices = [slice_of(nest) for nest in nests]
    known = [s for s in slices if s is not None]
    if len(known) < len(slices) or function.allocs:
        return None
    inputs = {id(b) for b in function.inputs}
    if any(id(load.buffer) not in inputs for s in known for load in loads(s.value)):
        return None
    names = Names.beside(function)
    body = [
        nest if _is_narrow(s) else store_loops((s,), names, "parallel")
        for nest, s in zip(nests, known, strict=True)
    ]
    return finished(function, "movement", body)


def _is_narrow(stage: Stage) -> bool:
    """Whether the contiguous runs are shorter than a vector: plain loops are then faster."""
    axes = collapse(stage.axes, [stage]).axes
    return bool(axes) and isinstance(axes[-1].extent, int) and axes[-1].extent < NARROW
