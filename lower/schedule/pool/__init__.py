"""Windows over images, with what follows them: a line of data is reduced across, then along itself.

Of a row of results, all that its windows see across is combined into a line, which lies in the
nearest cache: neighbours are vectors.  Around the line is what combines to nothing, so that what
the windows see along it needs no tests.  Across, loops run over the places that are in data.
"""

from collections.abc import Sequence

from relax_egraph.lower.schedule.inline import inline
from relax_egraph.lower.schedule.loops import parallel
from relax_egraph.lower.schedule.matmul import follows
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.pool.across import filled
from relax_egraph.lower.schedule.pool.line import line_of
from relax_egraph.lower.schedule.pool.results import Results
from relax_egraph.lower.schedule.pool.windows import Pool, match_pool
from relax_egraph.lower.schedule.reductions import loops
from relax_egraph.lower.schedule.scheduled import Scheduled, assemble
from relax_egraph.lower.schedule.stages import Stage, computed_from
from relax_egraph.tir.rewrite import loads
from relax_egraph.tir.stmt import PrimFunc, Stmt, TirBlock, seq


def apply(function: PrimFunc, stages: Sequence[Stage]) -> Scheduled | None:
    """The schedule of `function` if it is one pool, and maps of it of the same shape.

    What comes before it and is not cheap enough to be inlined, or does not depend on data, is
    computed first.
    """
    tables = [s.buffer for s in stages if not s.reduction and not loads(s.value)]
    stages = inline(stages, (*function.outputs, *tables), hoist=True)
    pools = [p for s in stages if (p := match_pool(s))]
    if len(pools) != 1:
        return None
    (pool,) = pools
    rest = computed_from(pool.stage, stages)
    if not all(follows(s, pool.stage, rest) for s in rest):
        return None
    names = Names.beside(function)
    before = [loops(s, names, "parallel") for s in stages if s is not pool.stage and s not in rest]
    is_output = any(pool.stage.buffer is b for b in function.outputs)
    return assemble(function, "pool", [*before, _loops(pool, rest, names, is_output=is_output)])


def _loops(pool: Pool, rest: Sequence[Stage], names: Names, *, is_output: bool) -> Stmt:
    line, axes = line_of(pool, names)
    w = pool.along
    made = line.buffer("line", (line.whole(line.columns.size) - 1) * w.stride + w.reach)
    body = seq(filled(line, made), Results(line, rest, is_output).of(made))
    return parallel(axes, TirBlock("line", (), body, allocs=(made,)))
