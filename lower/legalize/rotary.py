"""Rotary position embedding: loops for both elements of pairs, and for the remaining elements."""

from collections.abc import Mapping, Sequence
from functools import partial

from relax_egraph.errors import NotLowerable
from relax_egraph.ir import dims
from relax_egraph.lower.legalize.elementwise import Legalize, broadcast, element
from relax_egraph.lower.legalize.proven import need_equal
from relax_egraph.lower.legalize.slices import Part, filled
from relax_egraph.tir import te
from relax_egraph.tir.expr import Buffer, Operand, TirExpr, TirVar, from_dim
from relax_egraph.tir.stmt import PrimFunc

Point = tuple[TirVar, ...]
At = tuple[Operand, ...]


def rotary_embedding(
    x: te.Tensor, cos: te.Tensor, sin: te.Tensor, *, interleaved: bool
) -> PrimFunc:
    """The rotation of pairs; each part has its own loops, contiguous unless `interleaved`."""
    *leading, size = x.shape
    count = cos.shape[-1]
    need_equal(cos.shape, sin.shape)
    need_equal(broadcast(tuple(leading), cos.shape[:-1]), tuple(leading))
    of_each = dims.equal(count, size)
    half = dims.floordiv(size, 2) if of_each else count
    rotated = dims.mul(half, 2)
    if not (dims.equal(rotated, size) if of_each else dims.prove_ge(size, rotated)):
        raise NotLowerable("how many pairs there are is known only at run time")

    def at(second: bool, i: Point) -> At:
        if interleaved:
            return (*i[:-1], i[-1] * 2 + int(second))
        return (*i[:-1], i[-1] + from_dim(half)) if second else i

    def value(second: bool, operands: Sequence[Buffer], i: Point) -> TirExpr:
        place = at(second, i) if of_each else i
        c, s = (element(angle, (*leading, count), place) for angle in operands[1:])
        here, there = operands[0][at(second, i)], operands[0][at(not second, i)]
        return here * c + there * s if second else here * c - there * s

    def behind(i: Point) -> At:
        return (*i[:-1], i[-1] + from_dim(rotated))

    parts = [
        Part(name, (*leading, half), partial(at, second), partial(value, second))
        for name, second in (("first", False), ("second", True))
    ]
    if not of_each:
        extents = (*leading, dims.sub(size, rotated))
        parts.append(Part("rest", extents, behind, lambda operands, i: operands[0][behind(i)]))
    return filled("rotary_embedding", x.shape, (x, cos, sin), parts)


LEGALIZE: Mapping[str, Legalize] = {"nn.rotary_embedding": rotary_embedding}
