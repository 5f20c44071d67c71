"""Operators that move elements and compute nothing."""

from relax_egraph.errors import IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.op import op
from relax_egraph.ir.ops.broadcast import broadcast_shapes
from relax_egraph.ir.requirements import differ
from relax_egraph.ir.struct_info import (
    Shape,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    shape_text,
    tensor,
)


def normalize_axis(name: str, x: TensorStructInfo, axis: int) -> int:
    """`axis`, counted from the front; raises `IllTyped` if `x` has no such axis."""
    if not -x.ndim <= axis < x.ndim:
        raise IllTyped(f"R.{name} of {x}: axis {axis} is outside of rank {x.ndim}")
    return axis % x.ndim


def unit_axes(shape: Shape | None) -> tuple[int, ...] | None:
    """The axes of extent 1; ``None`` if an extent may be 1 or not."""
    if shape is None or not all(d == 1 or dims.distinct(d, 1) for d in shape):
        return None
    return tuple(k for k, d in enumerate(shape) if d == 1)


@op(fusible=True)
def permute_dims(x: TensorStructInfo, *, axes: tuple[int, ...] | None = None) -> StructInfo:
    """``out`` has axis ``k`` of extent ``x.shape[axes[k]]``; without `axes`, all reversed."""
    if x.ndim < 0:
        return tensor(None, x.dtype, -1 if axes is None else len(axes))
    order = tuple(reversed(range(x.ndim))) if axes is None else axes
    places = [a % x.ndim if -x.ndim <= a < x.ndim else -1 for a in order]
    if sorted(places) != list(range(x.ndim)):
        raise IllTyped(
            f"R.permute_dims of {x}: axes {list(order)} are no permutation of 0..{x.ndim - 1}"
        )
    known = x.dims
    return tensor(known and tuple(known[a] for a in places), x.dtype, x.ndim)


@op(fusible=True)
def reshape(x: TensorStructInfo, shape: ShapeStructInfo) -> StructInfo:
    """``out`` has the elements of `x` in row-major order, and the given shape."""
    if x.dims is not None and shape.values is not None:
        have, want = dims.product(x.dims), dims.product(shape.values)
        if differ(have, want):
            raise IllTyped(
                f"R.reshape of {x} to {shape_text(shape.values)}: "
                f"{dims.text(have)} elements do not fill {dims.text(want)}"
            )
    return tensor(shape.values, x.dtype, shape.ndim)


@op(fusible=True)
def flatten(x: TensorStructInfo) -> StructInfo:
    """``out`` has the elements of `x` in row-major order, in one axis."""
    known = x.dims
    return tensor(None if known is None else (dims.product(known),), x.dtype, 1)


@op(fusible=True)
def broadcast_to(x: TensorStructInfo, shape: ShapeStructInfo) -> StructInfo:
    """``out`` repeats `x` along new leading axes and axes of extent 1, up to the given shape."""
    if x.dims is not None and shape.values is not None:
        try:
            result = broadcast_shapes(x.dims, shape.values)
        except ValueError:
            result = ()
        if result is not None and (
            len(result) != len(shape.values) or any(map(differ, result, shape.values))
        ):
            raise IllTyped(
                f"R.broadcast_to of {x}: it does not broadcast to {shape_text(shape.values)}"
            )
    return tensor(shape.values, x.dtype, shape.ndim)


@op(fusible=True)
def expand_dims(x: TensorStructInfo, *, axis: tuple[int, ...]) -> StructInfo:
    """``out`` has new axes of extent 1 at the places `axis` of the result."""
    if x.ndim < 0:
        return tensor(None, x.dtype)
    rank = x.ndim + len(axis)
    places = {a % rank for a in axis if -rank <= a < rank}
    if len(places) != len(axis):
        raise IllTyped(
            f"R.expand_dims of {x}: axes {list(axis)} do not fit a result of rank {rank}"
        )
    if x.dims is None:
        return tensor(None, x.dtype, rank)
    rest = iter(x.dims)
    return tensor(tuple(1 if k in places else next(rest) for k in range(rank)), x.dtype)


@op(fusible=True)
def squeeze(x: TensorStructInfo, *, axis: tuple[int, ...] | None = None) -> StructInfo:
    """``out`` is `x` without the axes `axis`, each of extent 1; by default without all such."""
    if x.ndim < 0:
        return tensor(None, x.dtype)
    if axis is None:
        axis = unit_axes(x.dims)
        if axis is None:
            return tensor(None, x.dtype)
    places = {normalize_axis("squeeze", x, a) for a in axis}
    if x.dims is None:
        return tensor(None, x.dtype, x.ndim - len(places))
    for k in places:
        if differ(x.dims[k], 1):
            raise IllTyped(f"R.squeeze of {x}: axis {k} has extent {dims.text(x.dims[k])}, needs 1")
    return tensor(tuple(d for k, d in enumerate(x.dims) if k not in places), x.dtype)


@op("nn")
def batch_flatten(data: TensorStructInfo) -> StructInfo:
    """``out`` has the elements of `data` in row-major order; two axes, the first as it is."""
    if data.ndim == 0:
        raise IllTyped(f"R.nn.batch_flatten of {data}: needs a tensor of rank 1 or more")
    known = data.dims
    return tensor(known and (known[0], dims.product(known[1:])), data.dtype, 2)
