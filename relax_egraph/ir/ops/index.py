"""Indexing: reads at positions of index tensors, and slices.

An index counts from the end of its axis if it is negative.  No index reads outside of memory: one
that is still outside of the axis reads the nearest element, and 0 if the axis has none.  `R.take`
does so with mode ``"fast"``; with ``"clip"`` a negative index reads the first element, with
``"wrap"`` the remainder is taken, with ``"nan"`` an index that is negative or outside gives NaN.
Where that would hide a mistake, `R.check_indices` fails; imported models have it.
"""

from relax_egraph.errors import IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.dtypes import is_float, is_integer
from relax_egraph.ir.op import op
from relax_egraph.ir.ops.broadcast import broadcast_shapes
from relax_egraph.ir.ops.manipulate import normalize_axis
from relax_egraph.ir.ops.slices import is_never_inbound, slice_inbound, slice_of
from relax_egraph.ir.requirements import differ, exceeds, expect
from relax_egraph.ir.struct_info import (
    Shape,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    shape_text,
    tensor,
)

MODES = ("fast", "clip", "wrap", "nan")
"""The modes of `take` for an index outside of the axis."""


def integers(subject: str, indices: TensorStructInfo) -> None:
    """Raise `IllTyped`, with a message about `subject`, for `indices` that are no integers."""
    if indices.dtype is not None and not is_integer(indices.dtype):
        raise IllTyped(f"{subject}: needs indices of integers")


@op()
def take(
    x: TensorStructInfo, indices: TensorStructInfo, *, axis: int | None = None, mode: str = "fast"
) -> StructInfo:
    """``out[a…, i…, b…] = x[a…, indices[i…], b…]``, `indices` in the place of `axis`.

    Without `axis`, `x` has rank 1.  What an index outside reads, `mode` says: ``"fast"``,
    ``"clip"``, ``"wrap"`` or ``"nan"``.
    """
    subject = f"R.take of {x} and {indices}"
    integers(subject, indices)
    if mode not in MODES:
        raise IllTyped(f'{subject}: mode is "{mode}", needs one of: {", ".join(MODES)}')
    if mode == "nan" and x.dtype is not None and not is_float(x.dtype):
        raise IllTyped(f'{subject}: mode "nan" needs a floating-point tensor')
    if axis is None and x.ndim not in (-1, 1):
        raise IllTyped(f"{subject}: needs a tensor of rank 1, or an axis")
    if x.ndim < 0 or indices.ndim < 0:
        known = indices.ndim if axis is None else -1
        return tensor(indices.dims if axis is None else None, x.dtype, known)
    at = 0 if axis is None else normalize_axis("take", x, axis)
    if x.dims is None or indices.dims is None:
        return tensor(None, x.dtype, x.ndim - 1 + indices.ndim)
    return tensor((*x.dims[:at], *indices.dims, *x.dims[at + 1 :]), x.dtype)


@op()
def check_indices(
    indices: TensorStructInfo,
    shape: ShapeStructInfo,
    *,
    axes: tuple[int, ...],
    operator: str = "",
    from_end: bool = True,
) -> StructInfo:
    """`indices`; fails unless each is at least ``-n`` and below ``n``, the extent of its axis.

    Without `from_end` negative indices fail, too.
    The axes are those of a tensor of `shape`: one of `axes` is for all `indices`; several are for
    the elements of the last axis of `indices`, one for each; where it has fewer elements, the first
    axes are.  The message names the `operator`.
    """
    subject = f"R.check_indices of {indices} for axes {list(axes)} of {shape}"
    integers(subject, indices)
    if not axes or min(axes) < 0 or 0 <= shape.ndim <= max(axes):
        raise IllTyped(f"{subject}: needs axes of the shape, counted from 0")
    if len(axes) > 1 and indices.ndim == 0:
        raise IllTyped(f"{subject}: needs indices of rank 1 or more")
    if len(axes) > 1 and indices.dims is not None and exceeds(indices.dims[-1], len(axes)):
        raise IllTyped(
            f"{subject}: the last axis of the indices has extent {dims.text(indices.dims[-1])}, "
            f"needs {len(axes)} at most"
        )
    return tensor(indices.dims, indices.dtype, indices.ndim)


@op()
def gather_elements(
    data: TensorStructInfo, indices: TensorStructInfo, *, axis: int = 0
) -> StructInfo:
    """``out[i, j, …] = data[i, indices[i, j, …], …]``, the index being in the place of `axis`."""
    subject = f"R.gather_elements of {data} and {indices}"
    integers(subject, indices)
    fits_along(subject, "gather_elements", data, indices, axis)
    return tensor(indices.dims, data.dtype, indices.ndim if indices.ndim >= 0 else data.ndim)


def fits_along(
    subject: str, name: str, data: TensorStructInfo, indices: TensorStructInfo, axis: int
) -> None:
    """Raise `IllTyped` for `indices` that reach beyond `data` along an axis other than `axis`."""
    if data.ndim >= 0:
        normalize_axis(name, data, axis)
    if data.ndim >= 0 and indices.ndim >= 0 and data.ndim != indices.ndim:
        raise IllTyped(f"{subject}: needs operands of one rank")
    if data.dims is None or indices.dims is None:
        return
    for k, (have, want) in enumerate(zip(data.dims, indices.dims, strict=True)):
        if k != axis % data.ndim and exceeds(want, have):
            raise IllTyped(
                f"{subject}: along axis {k} there are indices for {dims.text(want)} of "
                f"{dims.text(have)} elements"
            )


@op()
def gather_nd(
    data: TensorStructInfo, indices: TensorStructInfo, *, batch_dims: int = 0
) -> StructInfo:
    """``out[b…, i…, …] = data[b…, indices[b…, i…, :], …]``, `batch_dims` axes being in common.

    The last axis of `indices` goes over the axes of `data` that are indexed.
    """
    subject = f"R.gather_nd of {data} and {indices}"
    integers(subject, indices)
    if batch_dims < 0:
        raise IllTyped(f"{subject}: batch_dims is {batch_dims}, needs 0 or more")
    depth = index_depth(subject, data, indices, batch_dims)
    if depth is None:
        return tensor(None, data.dtype)
    ndim = indices.ndim - 1 + data.ndim - batch_dims - depth
    if data.dims is None or indices.dims is None:
        return tensor(None, data.dtype, ndim)
    for k, (a, b) in enumerate(zip(data.dims[:batch_dims], indices.dims, strict=False)):
        if differ(a, b):
            raise IllTyped(
                f"{subject}: batch axis {k} has the extents {dims.text(a)} and {dims.text(b)}"
            )
    return tensor((*indices.dims[:-1], *data.dims[batch_dims + depth :]), data.dtype)


def index_depth(
    subject: str, data: TensorStructInfo, indices: TensorStructInfo, batch_dims: int = 0
) -> int | None:
    """The number of axes of `data` that the last axis of `indices` addresses, if it is known.

    Raises `IllTyped` if they do not fit behind `batch_dims` axes that both have.
    """
    if 0 <= indices.ndim <= batch_dims:
        raise IllTyped(f"{subject}: needs indices of rank {batch_dims + 1} or more")
    if indices.dims is None or data.ndim < 0:
        return None
    depth = indices.dims[-1]
    if not isinstance(depth, int):
        expect(dims.add(batch_dims, depth), data.ndim)
        return None
    if batch_dims + depth > data.ndim:
        raise IllTyped(
            f"{subject}: {depth} indices behind {batch_dims} batch axes, "
            f"needs a tensor of rank {batch_dims + depth} or more"
        )
    return depth


@op()
def index_tensor(data: TensorStructInfo, indices: TupleStructInfo) -> StructInfo:
    """``out[i…, …] = data[indices₀[i…], indices₁[i…], …]``; the `indices` broadcast."""
    shape = index_shape(f"R.index_tensor of {data} and {indices}", data, indices)
    count = len(indices.fields)
    if data.ndim < 0 or isinstance(shape, int):
        ndim = shape + data.ndim - count if isinstance(shape, int) and shape >= 0 else -1
        return tensor(None, data.dtype, ndim if data.ndim >= 0 else -1)
    ndim = len(shape) + data.ndim - count
    return tensor(data.dims and (*shape, *data.dims[count:]), data.dtype, ndim)


def index_shape(subject: str, data: TensorStructInfo, indices: TupleStructInfo) -> Shape | int:
    """The shape that `indices` into leading axes of `data` broadcast to; else its rank or -1."""
    tensors = [f for f in indices.fields if isinstance(f, TensorStructInfo)]
    if not tensors or 0 <= data.ndim < len(tensors):
        raise IllTyped(f"{subject}: needs 1 tensor of indices or more, and no more than axes")
    for info in tensors:
        integers(subject, info)
    shape: Shape | None = ()
    for info in tensors:
        if shape is None or info.dims is None:
            shape = None
            continue
        try:
            shape = broadcast_shapes(shape, info.dims)
        except ValueError:
            raise IllTyped(f"{subject}: the indices do not broadcast") from None
    if shape is not None:
        return shape
    ranks = [info.ndim for info in tensors]
    return -1 if min(ranks) < 0 else max(ranks)


@op(order=("x", "axes", "begin", "end", "strides", "assume_inbound"), fusible=True)
def strided_slice(
    x: TensorStructInfo,
    begin: ShapeStructInfo,
    end: ShapeStructInfo,
    *,
    axes: tuple[int, ...],
    strides: tuple[int, ...] | None = None,
    assume_inbound: bool = False,
) -> StructInfo:
    """``out = x[…, begin:end:stride, …]`` along each of `axes`, as Python slices.

    Negative positions count from the end, others are clamped.  With `assume_inbound` the caller
    promises that none needs it, and that none is negative but those that are negative numbers.
    """
    written = ", ".join(
        f"{name}={'?' if at.values is None else shape_text(at.values)}"
        for name, at in (("begin", begin), ("end", end))
    )
    subject = f"R.strided_slice of {x} along axes {list(axes)}, {written}"
    steps = (1,) * len(axes) if strides is None else strides
    for name, count in (("begin", begin.ndim), ("end", end.ndim), ("strides", len(steps))):
        if count not in (-1, len(axes)):
            raise IllTyped(f"{subject}: {name} has {count} numbers, needs {len(axes)}")
    if 0 in steps:
        raise IllTyped(f"{subject}: a stride is 0")
    if x.ndim < 0:
        return tensor(None, x.dtype)
    places = [normalize_axis("strided_slice", x, a) for a in axes]
    if len(set(places)) != len(places):
        raise IllTyped(f"{subject}: an axis is repeated")
    if x.dims is None or begin.values is None or end.values is None:
        return tensor(None, x.dtype, x.ndim)
    shape = list(x.dims)
    for place, a, b, step in zip(places, begin.values, end.values, steps, strict=True):
        extent = x.dims[place]
        if not assume_inbound:
            part = slice_of(extent, a, b, step)
            if part is None:
                return tensor(None, x.dtype, x.ndim)
            shape[place] = part[1]
            continue
        if is_never_inbound(extent, a, b, step):
            raise IllTyped(f"{subject}: the slice is not within axis {place}")
        shape[place] = slice_inbound(extent, a, b, step)[1]
    return tensor(tuple(shape), x.dtype)


@op()
def dynamic_strided_slice(
    x: TensorStructInfo, begin: TensorStructInfo, end: TensorStructInfo, strides: TensorStructInfo
) -> StructInfo:
    """``out = x[begin₀:end₀:strides₀, begin₁:end₁:strides₁, …]``, of every axis, as Python."""
    for name, at in (("begin", begin), ("end", end), ("strides", strides)):
        subject = f"R.dynamic_strided_slice of {x}: {name} is {at}"
        if at.dtype not in (None, "int64") or at.ndim not in (-1, 1):
            raise IllTyped(f"{subject}, needs a tensor of rank 1 of int64")
        if x.ndim >= 0 and at.dims is not None and differ(at.dims[0], x.ndim):
            raise IllTyped(f"{subject}, needs {x.ndim} numbers")
    return tensor(None, x.dtype, x.ndim)
