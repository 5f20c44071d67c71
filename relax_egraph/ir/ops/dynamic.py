"""Operators whose result's shape depends on data, and shapes and dimensions as values."""

from relax_egraph.errors import IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.op import op
from relax_egraph.ir.ops.create import known_dtype
from relax_egraph.ir.ops.dtypes import INTEGERS
from relax_egraph.ir.ops.manipulate import normalize_axis
from relax_egraph.ir.struct_info import (
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    tensor,
)


@op()
def unique(
    x: TensorStructInfo,
    *,
    sorted: bool = True,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
) -> StructInfo:
    """The distinct elements of `x`, or slices at `axis`, ascending or in order of appearance.

    With one of the flags a tuple: these, then ``int64`` what the flags select: the index of the
    first of each; for each element of `x`, in row-major order, its place among the distinct
    ones; how often each occurs.  NaNs are one element, but as parts of slices all differ.
    """
    if axis is not None and x.ndim >= 0:
        axis = normalize_axis("unique", x, axis)
    elements = tensor(None, x.dtype, 1 if axis is None else x.ndim)
    of_each = tensor(None, "int64", 1)
    every = of_each
    if x.dims is not None:
        length = dims.product(x.dims) if axis is None else x.dims[axis]
        every = tensor((length,), "int64")
    flags = ((return_index, of_each), (return_inverse, every), (return_counts, of_each))
    more = [info for wanted, info in flags if wanted]
    return TupleStructInfo((elements, *more)) if more else elements


@op()
def nonzero(x: TensorStructInfo) -> StructInfo:
    """``out[a, j]`` is the index along axis ``a`` of the ``j``-th element that is not 0.

    Elements in row-major order; NaN is not 0.
    """
    return tensor(None, "int64", 2)


@op()
def size(x: TensorStructInfo) -> StructInfo:
    """The number of elements of `x`, as a tensor of rank 0."""
    return tensor((), "int64")


@op()
def shape_of(x: TensorStructInfo) -> StructInfo:
    """The shape of `x`."""
    return ShapeStructInfo(x.dims, x.ndim)


@op()
def shape_to_tensor(shape: ShapeStructInfo) -> StructInfo:
    """``out[k]`` is extent ``k`` of a shape."""
    return tensor((shape.ndim,) if shape.ndim >= 0 else None, "int64", 1)


@op()
def tensor_to_shape(tensor: TensorStructInfo) -> StructInfo:
    """The shape whose extents are the elements of an integer tensor of rank 1, none negative."""
    if tensor.ndim not in (-1, 1) or tensor.dtype not in (None, *INTEGERS):
        raise IllTyped(f"R.tensor_to_shape of {tensor}: needs a tensor of integers of rank 1")
    extent = tensor.dims[0] if tensor.dims else None
    return ShapeStructInfo(None, extent if isinstance(extent, int) else -1)


@op()
def prim_to_tensor(value: PrimStructInfo, *, dtype: str) -> StructInfo:
    """A number of the host as a tensor of rank 0, converted to `dtype`."""
    return tensor((), known_dtype("prim_to_tensor", dtype))


@op()
def prim_less_equal(a: PrimStructInfo, b: PrimStructInfo) -> StructInfo:
    """``out = a ≤ b``, of whole numbers of the host, as a tensor of rank 0: a condition."""
    for operand in (a, b):
        if operand.dtype not in INTEGERS:
            raise IllTyped(f"R.prim_less_equal of {a}, {b}: needs whole numbers")
    return tensor((), "bool")
