"""Copies of operands to parts of a result: contiguous, and row by row if they are short."""

from collections.abc import Sequence
from dataclasses import replace

from relax_egraph.ir import dims
from relax_egraph.lower.schedule.loops import (
    CHUNK,
    NARROW,
    around,
    bound,
    collapse,
    store_loops,
)
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.scheduled import Scheduled, assemble
from relax_egraph.lower.schedule.stages import Stage, slice_of
from relax_egraph.tir.expr import TirExpr, TirVar
from relax_egraph.tir.rewrite import loads
from relax_egraph.tir.stmt import PrimFunc, Seq, Stmt, seq

MOST_TOGETHER = 32
"""The maximal parts of a row that are copied in one loop over the rows."""


def apply(function: PrimFunc) -> Scheduled | None:
    """The schedule of `function` if each of its nests stores values of inputs only."""
    nests = function.body.body if isinstance(function.body, Seq) else (function.body,)
    slices = [slice_of(nest) for nest in nests]
    stages = [s for s in slices if s is not None]
    if len(stages) < len(slices) or function.allocs:
        return None
    inputs = {id(b) for b in function.inputs}
    if any(id(load.buffer) not in inputs for s in stages for load in loads(s.value)):
        return None
    names = Names.beside(function)
    pairs = [(nest, _collapsed(s)) for nest, s in zip(nests, stages, strict=True)]
    body: list[Stmt] = []
    while pairs:
        count = _together([s for _, s in pairs])
        group, pairs = pairs[:count], pairs[count:]
        body.append(_loops(group, names))
    return assemble(function, "movement", body)


def _loops(group: Sequence[tuple[Stmt, Stage]], names: Names) -> Stmt:
    """The copies of `group`, in one loop over their rows if there are several."""
    (nest, single), *others = group
    if others:
        return _by_rows([s for _, s in group], names)
    if _is_narrow(single):  # runs are shorter than a vector
        return nest
    return store_loops((single,), names, "parallel")


def _collapsed(stage: Stage) -> Stage:
    order = collapse(stage.axes, [stage])
    return replace(bound(stage, order.values), axes=order.axes)


def _together(slices: Sequence[Stage]) -> int:
    """The number of leading slices that are short parts of the same rows."""
    first = slices[0]
    count = 0
    while (
        count < min(len(slices), MOST_TOGETHER)
        and _is_short(slices[count])
        and _has_rows_of(first, slices[count])
    ):
        count += 1
    return max(count, 1)


def _is_short(stage: Stage) -> bool:
    extent = stage.axes[-1].extent if len(stage.axes) > 1 else None
    return isinstance(extent, int) and extent <= CHUNK


def _has_rows_of(first: Stage, stage: Stage) -> bool:
    pairs = zip(first.axes[:-1], stage.axes[:-1], strict=False)
    return len(first.axes) == len(stage.axes) and all(
        dims.equal(a.extent, b.extent) for a, b in pairs
    )


def _by_rows(slices: Sequence[Stage], names: Names) -> Stmt:
    rows, _ = names.renamed(slices[0].axes[:-1], "i")
    lines: list[Stmt] = []
    for s in slices:
        along: dict[TirVar, TirExpr] = {
            a.var: row.var for a, row in zip(s.axes[:-1], rows, strict=True)
        }
        line = replace(bound(s, along), axes=s.axes[-1:])
        lines.append(store_loops((line,), names))
    return around(rows, seq(*lines), "parallel", "parallel")


def _is_narrow(stage: Stage) -> bool:
    """Whether the contiguous runs are shorter than a vector, so that plain loops are faster."""
    axes = stage.axes
    return bool(axes) and isinstance(axes[-1].extent, int) and axes[-1].extent < NARROW
