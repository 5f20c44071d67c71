"""Ends of axes, cut off or added."""

from relax_egraph.frontends.building.builder import Builder, shape_of
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Expr, ShapeExpr, Tuple


def without_ends(b: Builder, x: Expr, place: int, before: Dim, behind: Dim) -> Expr:
    """`x` without so many elements at each end of the axis `place`."""
    if before == behind == 0:
        return x
    shape = shape_of(x)
    end = dims.maximum(dims.sub(shape[place], behind), 0)
    return b.emit("strided_slice", x, ShapeExpr((before,)), ShapeExpr((end,)), axes=(place,))


def between(b: Builder, x: Expr, place: int, before: Dim, behind: Dim, value: Expr) -> Expr:
    """`x` between so many elements `value` at each end of the axis `place`."""
    if before == behind == 0:
        return x
    shape = shape_of(x)

    def border(width: Dim) -> list[Expr]:
        extents = ShapeExpr((*shape[:place], width, *shape[place + 1 :]))
        return [b.emit("full", extents, value)] if width != 0 else []

    return b.emit("concat", Tuple((*border(before), x, *border(behind))), axis=place)
