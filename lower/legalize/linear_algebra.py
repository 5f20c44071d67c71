"""Products of matrices."""

from collections.abc import Mapping

from relax_egraph.errors import NotLowerable
from relax_egraph.ir import dims
from relax_egraph.lower.legalize.binary import multiply_scalars
from relax_egraph.lower.legalize.elementwise import Legalize, broadcast, element
from relax_egraph.tir import te
from relax_egraph.tir.expr import TirVar
from relax_egraph.tir.tensor import Reduction


def matmul(x: te.Tensor, y: te.Tensor) -> te.Tensor:
    """``out[…, i, j] = Σₖ x[…, i, k] · y[…, k, j]``; an operand of rank 1 has no row or column."""
    inner = x.shape[-1]
    if not dims.equal(inner, y.shape[-2:][0]):
        raise NotLowerable("whether the inner extents agree is known only at run time")
    batch = broadcast(x.shape[:-2], y.shape[:-2])
    rows, columns = x.shape[-2:-1], y.shape[-1:] if len(y.shape) > 1 else ()
    k = te.reduce_axis(inner)

    def value(*i: TirVar) -> Reduction:
        head, tail = i[: len(batch)], i[len(batch) :]
        row, column = tail[: len(rows)], tail[len(rows) :]
        a = element(x, (*batch, *rows, inner), (*head, *row, k))
        b = element(y, (*batch, inner, *columns), (*head, k, *column))
        return te.sum(multiply_scalars(a, b), k)

    return te.compute((*batch, *rows, *columns), value, "matmul")


LEGALIZE: Mapping[str, Legalize] = {"matmul": matmul}
