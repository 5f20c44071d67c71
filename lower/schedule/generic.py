"""The fallback: a nest for each stage, contiguous and vectorized if that is legal.

A function without stages keeps its loops.
"""

from collections.abc import Sequence

from relax_egraph.lower.schedule.elementwise import together
from relax_egraph.lower.schedule.inline import inline
from relax_egraph.lower.schedule.matmul import follows, tiles
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.pieces import piecewise_loops
from relax_egraph.lower.schedule.product import match_contraction
from relax_egraph.lower.schedule.reductions import loops
from relax_egraph.lower.schedule.scheduled import Scheduled, assemble
from relax_egraph.lower.schedule.stages import Stage
from relax_egraph.tir.rewrite import loads
from relax_egraph.tir.stmt import (
    PrimFunc,
    Stmt,
)


def apply(function: PrimFunc, stages: Sequence[Stage]) -> Scheduled:
    """`function` with a nest for each stage, except that a product includes its epilogue."""
    names = Names.beside(function)
    operands = [r.buffer for s in stages if match_contraction(s) for r in loads(s.value)]
    products = [s.buffer for s in stages if match_contraction(s)]
    rest = inline(stages, (*function.outputs, *operands, *products), hoist=True)
    nests: list[Stmt] = []
    while rest:
        group = _group(rest)
        rest = rest[len(group) :]
        head, *others = group
        if match_contraction(head):
            needed = any(s.reads(head.buffer) for s in rest) or head.buffer in function.outputs
            nests.append(tiles(head, others, names, is_output=needed))
        elif head.reduction is None:
            nests.append(piecewise_loops(group, names, "parallel"))
        else:
            nests.append(loops(head, names, "parallel"))
    return assemble(function, "generic", nests)


def _group(stages: Sequence[Stage]) -> Sequence[Stage]:
    """The longest run of `stages`, from the first on, that one nest can compute."""
    head, *rest = stages
    if head.reduction is None:
        injective = next((k for k, s in enumerate(stages) if s.reduction), len(stages))
        return together(stages[:injective])[0]
    group = [head]
    if match_contraction(head):
        for s in rest:
            if not follows(s, head, group[1:]) or not match_contraction(head, [*group[1:], s]):
                break
            group.append(s)
    return group


def verbatim(function: PrimFunc) -> Scheduled:
    """`function` with unchanged loops."""
    return assemble(function, "generic", [function.body])
