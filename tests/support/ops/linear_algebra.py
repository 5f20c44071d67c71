"""Instances of products of matrices and tensors."""

from collections.abc import Mapping

from tests.support.ops.case import ANY, Array, Case, Draw, Sampler


def matmul(draw: Draw) -> Case:
    rows, inner, columns = (draw.extent() for _ in range(3))
    batch, dtype = draw.shape(0, 2), draw.choice(ANY)
    x = draw.choice([(inner,), (*batch, rows, inner)])
    y = draw.choice([(inner,), (*draw.part(batch), inner, columns)])
    return Case((draw.array(x, dtype), draw.array(y, dtype)), error=2e-5)


def outer(draw: Draw) -> Case:
    dtype = draw.choice(ANY)
    return Case((draw.array((draw.extent(),), dtype), draw.array((draw.extent(),), dtype)))


SUBSCRIPTS = (
    *("ij,jk->ik", "ij,jk", "ik,kj->ji", "bij,bjk->bik", "i,i", "i,j->ij", "ij,kl->jlik"),
    *("ii", "ii->i", "iij->j", "ij->ji", "ij->", "ji", "ij->i", "ijk,jil->kl", "i,i,i->i"),
    *("...", "...->...", "...ij->...ji", "...ij,...jk->...ik", "...i,...i", "i...->...", ",i->i"),
    *("A b, b C", "ab,bc,cd->ad", "...,...", "i...,j...->ij..."),
)


def einsum(draw: Draw) -> Case:
    """Ellipses stand for up to two axes, which broadcast."""
    subscripts, dtype = draw.choice(SUBSCRIPTS), draw.choice(ANY)
    terms = subscripts.partition("->")[0].replace(" ", "").split(",")
    extents = {letter: draw.extent() for letter in "".join(terms) if letter.isalpha()}
    whole = draw.shape(0, 2)
    operands: list[Array] = []
    for term in terms:
        before, dots, after = term.partition("...")
        wild = draw.part(whole) if dots else ()
        shape = (*(extents[c] for c in before), *wild, *(extents[c] for c in after))
        operands.append(draw.array(shape, dtype))
    return Case((tuple(operands),), {"subscripts": subscripts}, error=2e-5)


SAMPLERS: Mapping[str, Sampler] = {"matmul": matmul, "outer": outer, "einsum": einsum}
