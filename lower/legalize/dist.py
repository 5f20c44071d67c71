"""Loops over all parts: what one machine computes of a program of several devices."""

from collections.abc import Mapping

from relax_egraph.errors import NotLowerable
from relax_egraph.ir import dims
from relax_egraph.lower.legalize.elementwise import Legalize
from relax_egraph.lower.legalize.reduce import sum_
from relax_egraph.tir import te
from relax_egraph.tir.expr import TirExpr, TirVar, from_dim


def shard(x: te.Tensor, *, parts: int, axis: int) -> te.Tensor:
    """Part ``r`` begins behind ``r`` others."""
    place = axis % len(x.shape)
    if not dims.divides(parts, x.shape[place]):
        raise NotLowerable("whether an axis has equal parts is known only at run time")
    part = dims.floordiv(x.shape[place], parts)

    def value(r: TirVar, *i: TirVar) -> TirExpr:
        return x[(*i[:place], r * from_dim(part) + i[place], *i[place + 1 :])]

    return te.compute((parts, *x.shape[:place], part, *x.shape[place + 1 :]), value, "shard")


def replicate(x: te.Tensor, *, parts: int) -> te.Tensor:
    """Every part is the tensor."""

    def value(r: TirVar, *i: TirVar) -> TirExpr:
        return x[i]

    return te.compute((parts, *x.shape), value, "replicate")


def all_gather(x: te.Tensor, *, axis: int) -> te.Tensor:
    """The part, and the place in it, of each place along the axis."""
    parts, *shape = x.shape
    place = axis % len(shape)
    part = from_dim(shape[place])
    shape[place] = dims.mul(shape[place], parts)

    def value(*i: TirVar) -> TirExpr:
        inside = (*i[:place], i[place] % part, *i[place + 1 :])
        return x[(i[place] // part, *inside)]

    return te.compute(shape, value, "all_gather")


def all_reduce(x: te.Tensor) -> te.Tensor:
    """The sum over the parts."""
    return sum_(x, axis=(0,), keepdims=False)


LEGALIZE: Mapping[str, Legalize] = {
    "dist.shard": shard,
    "dist.replicate": replicate,
    "dist.all_gather": all_gather,
    "dist.all_reduce": all_reduce,
}
