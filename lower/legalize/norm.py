"""Normalisations: softmax and its kin."""

from collections.abc import Mapping

from relax_egraph.lower.legalize.elementwise import Legalize
from relax_egraph.lower.legalize.reduce import without
from relax_egraph.tir import te
from relax_egraph.tir.expr import TirExpr


def softmax(x: te.Tensor, *, axis: int) -> te.Tensor:
    """Four tensors: the maximum, ``exp(x - max)``, its sum, and the quotient."""
    place = axis % len(x.shape)
    extent, rest = x.shape[place], without(x.shape, (place,))

    def at(reduced: te.Tensor, i: tuple[TirExpr, ...]) -> TirExpr:
        return reduced[without(i, (place,))]

    def row(source: te.Tensor, i: tuple[TirExpr, ...], k: TirExpr) -> TirExpr:
        return source[(*i[:place], k, *i[place:])]

    k, r = te.reduce_axis(extent), te.reduce_axis(extent)
    top = te.compute(rest, lambda *i: te.max(row(x, i, k), k), "softmax_max")
    e = te.compute(x.shape, lambda *i: te.exp(x[i] - at(top, i)), "softmax_exp")
    total = te.compute(rest, lambda *i: te.sum(row(e, i, r), r), "softmax_sum")
    return te.compute(x.shape, lambda *i: e[i] / at(total, i), "softmax")


LEGALIZE: Mapping[str, Legalize] = {"nn.softmax": softmax}
