"""Tensors of positions along an axis."""

from relax_egraph.frontends.building.builder import Builder
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Expr, PrimValue


def counted(b: Builder, extent: Dim, axis: int = 0, rank: int = 1, dtype: str = "int64") -> Expr:
    """``0, 1, …`` below `extent` along `axis` of `rank`; the other extents are 1."""
    return along(b, b.emit("arange", PrimValue(extent), dtype=dtype), axis, rank)


def along(b: Builder, vector: Expr, axis: int, rank: int) -> Expr:
    """A vector as the `axis` of a tensor of `rank`, whose other extents are 1."""
    others = tuple(k for k in range(rank) if k != axis)
    return b.emit("expand_dims", vector, axis=others) if others else vector
