"""Tensors repeated along their axes."""

from collections.abc import Sequence

from relax_egraph.frontends.building.builder import Builder, shape_of
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Expr, ShapeExpr


def tiled(b: Builder, x: Expr, times: Sequence[Dim]) -> Expr:
    """`x`, of known shape, so many times along each of its axes."""
    numbers = [n for n in times if isinstance(n, int)]
    if len(numbers) == len(times):
        return b.emit("tile", x, repeats=tuple(numbers))
    shape = shape_of(x)
    # Repeating along an axis is broadcasting a new axis in front of it.
    apart = [d for extent in shape for d in (1, extent)]
    repeated = [d for pair in zip(times, shape, strict=True) for d in pair]
    rows = b.emit("reshape", x, ShapeExpr(tuple(apart)))
    rows = b.emit("broadcast_to", rows, ShapeExpr(tuple(repeated)))
    return b.emit("reshape", rows, ShapeExpr(tuple(map(dims.mul, times, shape))))
