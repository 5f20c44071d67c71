"""Operators whose result's shape depends on data, and the shape of a value as a value."""

from relax_egraph.ir.op import op
from relax_egraph.ir.struct_info import ShapeStructInfo, StructInfo, TensorStructInfo, tensor


@op()
def unique(x: TensorStructInfo) -> StructInfo:
    """The distinct elements of `x`, ascending; how many is known only at run time."""
    return tensor(None, x.dtype, 1)


@op()
def shape_of(x: TensorStructInfo) -> StructInfo:
    """The shape of `x`."""
    return ShapeStructInfo(x.dims, x.ndim)
