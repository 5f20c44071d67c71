"""Values over several devices, in the namespace ``R.dist``: parts in an axis, and collectives.

A value of which each device has a part of its own is one tensor: axis 0 has the parts, in the order
of the devices.  A value without that axis is one that every device has whole.  So a program of all
devices is a program of tensors, and means in numpy what it computes on devices.
"""

from relax_egraph.errors import IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.op import op
from relax_egraph.ir.ops.manipulate import normalize_axis
from relax_egraph.ir.requirements import differ, exceeds
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo, tensor


@op("dist")
def shard(x: TensorStructInfo, *, parts: int, axis: int) -> StructInfo:
    """``out[r]`` is part ``r`` of `x`, of equal `parts` side by side along `axis`.

    The extent of `axis` is a multiple of `parts`.
    """
    _check_parts("dist.shard", x, parts)
    if x.ndim < 0:
        return tensor(None, x.dtype)
    place = normalize_axis("dist.shard", x, axis)
    if x.dims is None:
        return tensor(None, x.dtype, x.ndim + 1)
    extent = x.dims[place]
    if differ(dims.mod(extent, parts), 0):
        raise IllTyped(
            f"R.dist.shard of {x}: axis {axis} has extent {dims.text(extent)}, "
            f"needs a multiple of {parts}"
        )
    part = dims.floordiv(extent, parts)
    return tensor((parts, *x.dims[:place], part, *x.dims[place + 1 :]), x.dtype)


@op("dist")
def replicate(x: TensorStructInfo, *, parts: int) -> StructInfo:
    """``out[r]`` is `x`, for each of so many `parts`: every device has all of it."""
    _check_parts("dist.replicate", x, parts)
    if x.dims is None:
        return tensor(None, x.dtype, x.ndim + 1 if x.ndim >= 0 else -1)
    return tensor((parts, *x.dims), x.dtype)


@op("dist")
def all_gather(x: TensorStructInfo, *, axis: int) -> StructInfo:
    """``out`` is the parts ``x[r]`` side by side along `axis`, an axis of the result."""
    _check_has_parts("dist.all_gather", x)
    if x.ndim < 0:
        return tensor(None, x.dtype)
    rank = x.ndim - 1
    if not -rank <= axis < rank:
        raise IllTyped(
            f"R.dist.all_gather of {x}: axis {axis} is outside of the result's rank {rank}"
        )
    if x.dims is None:
        return tensor(None, x.dtype, rank)
    parts, *shape = x.dims
    shape[axis] = dims.mul(shape[axis], parts)
    return tensor(tuple(shape), x.dtype)


@op("dist")
def all_reduce(x: TensorStructInfo) -> StructInfo:
    """``out = Σ x[r]``: every device gets the sum of all parts."""
    _check_has_parts("dist.all_reduce", x)
    if x.dtype == "bool":
        raise IllTyped(f"R.dist.all_reduce of {x}: needs numbers")
    if x.dims is None:
        return tensor(None, x.dtype, x.ndim - 1 if x.ndim >= 0 else -1)
    return tensor(x.dims[1:], x.dtype)


def _check_parts(name: str, x: TensorStructInfo, parts: int) -> None:
    if exceeds(1, parts):
        raise IllTyped(f"R.{name} of {x}: there are {parts} parts, needs 1 or more")


def _check_has_parts(name: str, x: TensorStructInfo) -> None:
    if x.ndim == 0:
        raise IllTyped(f"R.{name} of {x}: needs an axis of parts")
