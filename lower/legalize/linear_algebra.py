"""Products of matrices, vectors and tensors."""

from collections.abc import Mapping
from functools import reduce

from relax_egraph.errors import NotLowerable
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.subscripts import is_broadcast, read_subscripts
from relax_egraph.lower.legalize.binary import multiply_scalars
from relax_egraph.lower.legalize.elementwise import Legalize, broadcast, element
from relax_egraph.lower.legalize.proven import need_equal
from relax_egraph.tir import te
from relax_egraph.tir.expr import TirExpr, TirVar
from relax_egraph.tir.tensor import Reduction


def matmul(x: te.Tensor, y: te.Tensor) -> te.Tensor:
    """``out[…, i, j] = Σₖ x[…, i, k] · y[…, k, j]``; a vector has no row or no column axis."""
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


def outer(x1: te.Tensor, x2: te.Tensor) -> te.Tensor:
    """``out[i, j] = x1[i] · x2[j]``."""
    shape = (*x1.shape, *x2.shape)
    return te.compute(shape, lambda i, j: multiply_scalars(x1[i], x2[j]), "outer")


def einsum(operands: tuple[te.Tensor, ...], *, subscripts: str) -> te.Tensor:
    """One loop nest over all labels; axes with the same label are proven to have equal extents."""
    parsed = read_subscripts(subscripts, [len(x.shape) for x in operands])
    extents: dict[str, Dim] = {}
    for x, term in zip(operands, parsed.terms, strict=True):
        for label, extent in zip(term, x.shape, strict=True):
            previous = extents.setdefault(label, extent)
            if is_broadcast(label):
                (extents[label],) = broadcast((previous,), (extent,))
            else:
                need_equal((previous,), (extent,))
    summed = {
        label: te.reduce_axis(extents[label], f"k{k}") for k, label in enumerate(parsed.summed)
    }

    def value(*i: TirVar) -> TirExpr | Reduction:
        at: dict[str, TirVar] = {**dict(zip(parsed.output, i, strict=True)), **summed}
        elements = (
            element(x, tuple(extents[label] for label in term), tuple(at[label] for label in term))
            for x, term in zip(operands, parsed.terms, strict=True)
        )
        product = reduce(multiply_scalars, elements)
        return te.sum(product, [*summed.values()]) if summed else product

    return te.compute([extents[label] for label in parsed.output], value, "einsum")


LEGALIZE: Mapping[str, Legalize] = {"matmul": matmul, "outer": outer, "einsum": einsum}
