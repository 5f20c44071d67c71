"""Shapes as tensors: their extents as elements."""

from collections.abc import Mapping

from relax_egraph.ir import dims
from relax_egraph.ir.struct_info import Shape
from relax_egraph.lower.legalize.elementwise import Legalize
from relax_egraph.tir import te
from relax_egraph.tir.expr import TirExpr, TirVar, from_dim


def size(x: te.Tensor) -> te.Tensor:
    """The product of the extents."""
    return te.compute((), lambda: from_dim(dims.product(x.shape)), "size")


def shape_to_tensor(shape: Shape) -> te.Tensor:
    """The extents as elements, selected by index."""

    def extent(i: TirVar) -> TirExpr:
        selected: TirExpr = te.const(0, "int64")
        for place, dim in enumerate(shape):
            selected = te.select(te.equal(i, place), from_dim(dim), selected)
        return selected

    return te.compute((len(shape),), extent, "shape_to_tensor")


LEGALIZE: Mapping[str, Legalize] = {"size": size, "shape_to_tensor": shape_to_tensor}
