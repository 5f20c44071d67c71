"""Pooling with its epilogue: a line of data is reduced across lines, then along itself.

For a row of results, the data of its windows is combined across into a line in the nearest cache,
with neighbours in vectors.  The line is padded with neutral elements, so windows along it need no
tests.  Across, loops run over the places inside data.
"""

from collections.abc import Sequence

from relax_egraph.lower.schedule.inline import inline
from relax_egraph.lower.schedule.loops import parallel
from relax_egraph.lower.schedule.matmul import follows
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.pool.across import fill_line
from relax_egraph.lower.schedule.pool.line import line_of
from relax_egraph.lower.schedule.pool.results import Results
from relax_egraph.lower.schedule.pool.windows import Pool, match_pool
from relax_egraph.lower.schedule.reductions import loops
from relax_egraph.lower.schedule.scheduled import Scheduled, assemble
from relax_egraph.lower.schedule.stages import Stage, computed_from
from relax_egraph.tir.rewrite import loads
from relax_egraph.tir.stmt import PrimFunc, Stmt, TirBlock, seq


def apply(function: PrimFunc, stages: Sequence[Stage]) -> Scheduled | None:
    """The schedule of `function` if it is one pool and maps of it of the same shape.

    Stages before it that are too expensive to be inlined, or independent of data, are computed
    first.
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
    columns = line.whole(max(1, line.columns.size))
    buffer = line.buffer("line", (columns - 1) * w.stride + w.reach)
    body = seq(fill_line(line, buffer), Results(line, rest, is_output).of(buffer))
    return parallel(axes, TirBlock("line", (), body, allocs=(buffer,)))
