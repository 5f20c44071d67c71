"""Gives loop functions their loops: which order, which tiles, what is vectorized.

A schedule is a rewriting of the loop language, so that what is printed is what runs.
"""

from relax_egraph.lower.schedule import (
    attention,
    columns,
    conv,
    elementwise,
    generic,
    matmul,
    movement,
    pool,
    rows,
    slices,
)
from relax_egraph.lower.schedule.stages import stages_of
from relax_egraph.tir.stmt import PrimFunc


def schedule(function: PrimFunc) -> PrimFunc:
    """`function` with the loops of the first anchor that fits; the same results.

    The attribute ``schedule`` of the result names the anchor; a function that has it is
    returned as it is.  Sums may be added up in another order.
    """
    if "schedule" in function.attrs:
        return function
    stages = stages_of(function)
    if stages is None:
        return slices.apply(function) or generic.verbatim(function)
    for anchor in (attention, conv, matmul, pool, movement, elementwise, rows, columns):
        if scheduled := anchor.apply(function, stages):
            return scheduled
    return generic.apply(function, stages)
