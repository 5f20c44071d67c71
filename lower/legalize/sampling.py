"""Sampling from distributions, in one pass over the distribution of each sample."""

from collections.abc import Mapping

from relax_egraph.errors import NotLowerable
from relax_egraph.ir import dims
from relax_egraph.lower.legalize.elementwise import Legalize
from relax_egraph.lower.legalize.loops import ZERO, around, free, loop_function, names_of
from relax_egraph.tir import te
from relax_egraph.tir.expr import Buffer, TirExpr, TirVar, from_dim
from relax_egraph.tir.stmt import For, PrimFunc, Store, TirBlock, seq


def multinomial_from_uniform(
    prob: te.Tensor,
    uniform_sample: te.Tensor,
    sample_indices: te.Tensor | None = None,
    *,
    dtype: str,
) -> PrimFunc:
    """The least index at which the running sum of the row exceeds the sample.

    Row indices that are out of range are clamped.
    """
    samples = [uniform_sample] if sample_indices is None else [uniform_sample, sample_indices]
    (rows, outcomes), count = prob.shape, uniform_sample.shape[0]
    row_count = rows if sample_indices is None else sample_indices.shape[0]
    are_rows = all(dims.equal(s.shape[1], 1) for s in samples) and dims.equal(count, row_count)
    has_row = sample_indices is None or dims.prove_ge(rows, 1)
    if not are_rows or not has_row or not dims.prove_ge(outcomes, 1):
        raise NotLowerable("whether there is a distribution is known only at run time")
    operands = [Buffer(t.name, t.shape, t.dtype) for t in (prob, *samples)]
    out = Buffer("drawn", (count, 1), dtype)
    used = names_of(*operands, out)
    total = Buffer(free("total", used), (1,), "float64", "local")
    least = Buffer(free("least", used), (1,), "int64", "local")
    i, k = TirVar(free("i", used)), TirVar(free("k", used))
    row: TirExpr = i
    if sample_indices is not None:
        row = te.cast(operands[2][i, 0], "int64")
        row = te.maximum(te.minimum(row, from_dim(rows) - 1), 0)
    last = from_dim(outcomes) - 1
    is_above = te.cast(operands[1][i, 0], "float64") < total[0]
    body = seq(
        Store(total, (ZERO,), te.const(0, "float64")),
        Store(least, (ZERO,), last),
        For(
            k,
            from_dim(outcomes),
            "serial",
            seq(
                Store(total, (ZERO,), total[0] + te.cast(operands[0][row, k], "float64")),
                Store(least, (ZERO,), te.minimum(least[0], te.select(is_above, k, last))),
            ),
        ),
        Store(out, (i, ZERO), te.cast(least[0], dtype)),
    )
    block = TirBlock("draw", (), body, allocs=(total, least))
    return loop_function((*operands, out), around([(i, count)], block))


LEGALIZE: Mapping[str, Legalize] = {"multinomial_from_uniform": multinomial_from_uniform}
