"""Schedules: the order, the tiles and the vectorization of the loops of a function.

A schedule rewrites the loop language, so the printed loops are those that run.
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
    matmul_rows,
    movement,
    pool,
    recurrence,
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
    "matmul_rows": matmul_rows,
    "pool": pool,
    "movement": movement,
    "elementwise": elementwise,
    "rows": rows,
    "columns": columns,
}
"""The schedules in the order of trial, by the attribute ``schedule`` of the result."""


def schedule(function: PrimFunc) -> PrimFunc:
    """`function` with the loops of the first anchor that fits; equal up to the order of sums.

    The attribute ``anchor``, which names the schedule that extraction priced, is tried first.  The
    attribute ``schedule`` of the result names the anchor; a function that has it is returned
    unchanged.
    """
    return function if "schedule" in function.attrs else schedule_with(function, ()).function


def schedule_with(function: PrimFunc, constants: Collection[int]) -> Scheduled:
    """Loops for `function`, which has no schedule, in calls whose inputs `constants` are constant.

    Operands that depend on these alone become inputs, which are prepared when the program is built.
    """
    if constants:
        attrs = {**function.attrs, CONSTANT_INPUTS: tuple(sorted(constants))}
        function = replace(function, attrs=attrs)
    stages = stages_of(function)
    if stages is None:
        return slices.apply(function) or recurrence.apply(function) or generic.verbatim(function)
    promised = str(function.attrs.get(ANCHOR))
    for name in sorted(ANCHORS, key=lambda name: name != promised):
        if scheduled := ANCHORS[name].apply(function, stages):
            return scheduled
    return generic.apply(function, stages)
