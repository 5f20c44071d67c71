"""Gives loop functions their loops: which order, which tiles, what is vectorized.

A schedule is a rewriting of the loop language, so that what is printed is what runs.
"""

from collections.abc import Collection
from dataclasses import replace

from relax_egraph.ir.kernel import ANCHOR
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
from relax_egraph.lower.schedule.scheduled import CONSTANT_INPUTS, Scheduled
from relax_egraph.lower.schedule.stages import stages_of
from relax_egraph.tir.stmt import PrimFunc

ANCHORS = {
    "attention": attention,
    "conv": conv,
    "matmul": matmul,
    "pool": pool,
    "movement": movement,
    "elementwise": elementwise,
    "rows": rows,
    "columns": columns,
}
"""Schedules in the order in which they are tried, by the attribute ``schedule`` of the result."""


def schedule(function: PrimFunc) -> PrimFunc:
    """`function` with the loops of the first anchor that fits; the same results.

    A function may say what it was priced as, in the attribute ``anchor``: that is tried first.  The
    attribute ``schedule`` of the result names the anchor; a function that has it is returned as it
    is.  Sums may be added up in another order.
    """
    return function if "schedule" in function.attrs else schedule_with(function, ()).function


def schedule_with(function: PrimFunc, constants: Collection[int]) -> Scheduled:
    """`function`, which has no schedule, with loops for calls whose inputs `constants` are known.

    What the loops need of these alone becomes an input, prepared when the program is built.
    """
    if constants:
        attrs = {**function.attrs, CONSTANT_INPUTS: tuple(sorted(constants))}
        function = replace(function, attrs=attrs)
    stages = stages_of(function)
    if stages is None:
        return slices.apply(function) or generic.verbatim(function)
    promised = str(function.attrs.get(ANCHOR))
    for name in sorted(ANCHORS, key=lambda name: name != promised):
        if scheduled := ANCHORS[name].apply(function, stages):
            return scheduled
    return generic.apply(function, stages)
