"""Any other function: each stage by itself, contiguous and vectorized where that is legal.

A function that has no stages keeps its loops as they are written.
"""

from collections.abc import Sequence

from relax_egraph.lower.schedule.elementwise import together
from relax_egraph.lower.schedule.inline import inline
from relax_egraph.lower.schedule.matmul import follows, tiles
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.pieces import piecewise_loops
from relax_egraph.lower.schedule.product import match_contraction
from relax_egraph.lower.schedule.reductions import loops
from relax_egraph.lower.schedule.scheduled import Scheduled, finished
from relax_egraph.lower.schedule.stages import Stage
from relax_egraph.tir.rewrite import loads
from relax_egraph.tir.stmt import (
    PrimFunc,
    Stmt,
)


def apply(function: PrimFunc, stages: Sequence[Stage]) -> Scheduled:
    """`function` with one nest for each stage, save that a product takes along what follows it."""
    names = Names.beside(function)
    operands = [r.buffer for s in stages if match_contraction(s) for r in loads(s.value)]
    products = [s.buffer for s in stages if match_contraction(s)]
    rest = inline(stages, (*function.outputs, *operands, *products), hoist=True)
    nests: list[Stmt] = []
    while rest:
        group = _group(rest)
        rest = rest[len(group) :]
        first, *others = group
        if match_contraction(first):
            needed = any(s.reads(first.buffer) for s in rest) or first.buffer in function.outputs
            nests.append(tiles(first, others, names, is_output=needed))
        elif first.reduction is None:
            nests.append(piecewise_loops(group, names, "parallel"))
        else:
            nests.append(loops(first, names, "parallel"))
    return finished(function, "generic", nests)


def _group(stages: Sequence[Stage]) -> Sequence[Stage]:
    """The first of `stages`, and those after it that one nest can compute with it."""
    first, *rest = stages
    if first.reduction is None:
        injective = next((k for k, s in enumerate(stages) if s.reduction), len(stages))
        return together(stages[:injective])[0]
    group = [first]
    if match_contraction(first):
        for s in rest:
            if not follows(s, first, group[1:]) or not match_contraction(first, [*group[1:], s]):
                break
            group.append(s)
    return group


def verbatim(function: PrimFunc) -> Scheduled:
    """`function` with its loops as they are."""
    return finished(function, "generic", [function.body])
