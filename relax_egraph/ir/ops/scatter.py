"""Scattering: writes at positions of index tensors, slices, and masks.

An index counts from the end of its axis if it is negative.  No index writes outside of memory: one
that is still outside of the axis writes to the nearest element, unless `R.check_indices` refuses
it.  Into an axis without elements nothing is written.  Of several updates of one element, each is
combined with what those before it left, in row-major order: of plain updates the last one stays.
"""

import numpy as np

from relax_egraph.errors import IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.dtypes import is_float, is_integer
from relax_egraph.ir.op import op
from relax_egraph.ir.ops.broadcast import broadcast, broadcast_shapes
from relax_egraph.ir.ops.index import fits_along, index_depth, index_shape, integers
from relax_egraph.ir.ops.manipulate import normalize_axis
from relax_egraph.ir.ops.slices import slice_of
from relax_egraph.ir.requirements import differ, exceeds
from relax_egraph.ir.struct_info import (
    PrimStructInfo,
    Shape,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    shape_text,
    tensor,
)

REDUCTIONS = ("update", "add", "mul", "max", "min")
"""The ways to combine an update with the element; also ``"mean"``, half of the sum of both."""


@op()
def scatter_elements(
    data: TensorStructInfo,
    indices: TensorStructInfo,
    updates: TensorStructInfo,
    *,
    axis: int = 0,
    reduction: str = "update",
) -> StructInfo:
    """``out[i, indices[i, j, …], …] = updates[i, j, …]``, the index in the place of `axis`.

    All other elements are those of `data`.  `reduction` combines an update with what is there:
    ``"update"``, ``"add"``, ``"mul"``, ``"max"``, ``"min"``; ``"mean"`` is half of the sum of both.
    """
    subject = f"R.scatter_elements of {data}, {indices} and {updates}"
    _reducible(subject, data, updates, reduction, (*REDUCTIONS, "mean"))
    integers(subject, indices)
    fits_along(subject, "scatter_elements", data, indices, axis)
    _same_shape(subject, updates, indices.dims, indices.ndim)
    return tensor(data.dims, data.dtype, data.ndim)


@op()
def scatter_nd(
    data: TensorStructInfo,
    indices: TensorStructInfo,
    updates: TensorStructInfo,
    *,
    reduction: str = "update",
) -> StructInfo:
    """``out[indices[i…, :], …] = updates[i…, …]``; all other elements are those of `data`.

    `reduction` combines an update with what is there: ``"update"``, ``"add"``, ``"mul"``,
    ``"max"`` or ``"min"``.
    """
    subject = f"R.scatter_nd of {data}, {indices} and {updates}"
    _reducible(subject, data, updates, reduction, REDUCTIONS)
    integers(subject, indices)
    depth = index_depth(subject, data, indices)
    if depth is not None:
        rest = data.dims and data.dims[depth:]
        known = None if indices.dims is None or rest is None else (*indices.dims[:-1], *rest)
        _same_shape(subject, updates, known, indices.ndim - 1 + data.ndim - depth)
    return tensor(data.dims, data.dtype, data.ndim)


@op()
def index_put(
    data: TensorStructInfo,
    indices: TupleStructInfo,
    values: TensorStructInfo,
    *,
    accumulate: bool = False,
) -> StructInfo:
    """``out[indices₀[i…], indices₁[i…], …] = values[i…, …]``, or ``+=`` if `accumulate`.

    The `indices` broadcast, and `values` to what they address; all other elements are those of
    `data`.
    """
    subject = f"R.index_put of {data}, {indices} and {values}"
    _reducible(subject, data, values, "add" if accumulate else "update", REDUCTIONS)
    shape = index_shape(subject, data, indices)
    if data.dims is not None and not isinstance(shape, int) and values.dims is not None:
        target = (*shape, *data.dims[len(indices.fields) :])
        if not _may_broadcast(values.dims, target):
            raise IllTyped(f"{subject}: the values do not broadcast to {shape_text(target)}")
    return tensor(data.dims, data.dtype, data.ndim)


@op()
def slice_scatter(
    input: TensorStructInfo,
    src: TensorStructInfo,
    start: PrimStructInfo,
    end: PrimStructInfo,
    step: PrimStructInfo,
    *,
    axis: int = 0,
) -> StructInfo:
    """``out = input``, but ``out[…, start:end:step, …] = src`` along `axis`, as Python slices."""
    subject = f"R.slice_scatter of {input} and {src}"
    _one_dtype(subject, input, src)
    for name, number in (("start", start), ("end", end), ("step", step)):
        if not is_integer(number.dtype):
            raise IllTyped(f"{subject}: {name} is {number}, needs an integer")
    if step.value is not None and exceeds(1, step.value):
        raise IllTyped(f"{subject}: step is {dims.text(step.value)}, needs 1 or more")
    if input.ndim >= 0:
        normalize_axis("slice_scatter", input, axis)
    if input.ndim >= 0 and src.ndim not in (-1, input.ndim):
        raise IllTyped(f"{subject}: needs operands of one rank")
    if input.dims is not None and src.dims is not None:
        place = axis % input.ndim
        count = sliced(input.dims[place], start.value, end.value, step.value)
        for k, (have, extent) in enumerate(zip(input.dims, src.dims, strict=True)):
            wanted = have if k != place else None if count is None else count[1]
            if wanted is not None and differ(wanted, extent):
                raise IllTyped(
                    f"{subject}: axis {k} of the source has extent {dims.text(extent)}, "
                    f"needs {dims.text(wanted)}"
                )
    return tensor(input.dims, input.dtype, input.ndim)


def sliced(
    extent: Dim, start: Dim | None, end: Dim | None, step: Dim | None
) -> tuple[Dim, Dim] | None:
    """The first position and the count of the slice, if they are known; `step` is a number."""
    if start is None or end is None or not isinstance(step, int):
        return None
    return slice_of(extent, start, end, step)


@op(elementwise=True)
def masked_fill(x: TensorStructInfo, mask: TensorStructInfo, *, value: float) -> StructInfo:
    """``out = value if mask else x``; the operands broadcast."""
    subject = f"R.masked_fill of {x} and {mask}"
    if mask.dtype not in (None, "bool"):
        raise IllTyped(f"{subject}: needs a mask of booleans")
    if x.dtype is not None and not _holds(x.dtype, value):
        raise IllTyped(f"{subject}: the value {value} is no {x.dtype}")
    try:
        shape = broadcast("masked_fill", tensor(x.dims, "bool", x.ndim), mask)
    except IllTyped:
        raise IllTyped(f"{subject}: the shapes do not broadcast") from None
    return tensor(shape.dims, x.dtype, shape.ndim)


def _holds(dtype: str, value: float) -> bool:
    if is_float(dtype):
        return True
    if not float(value).is_integer():
        return False
    if dtype == "bool":
        return 0 <= value <= 1
    limits = np.iinfo(dtype)
    return int(limits.min) <= value <= int(limits.max)


def _one_dtype(subject: str, data: TensorStructInfo, updates: TensorStructInfo) -> None:
    if data.dtype and updates.dtype and data.dtype != updates.dtype:
        raise IllTyped(f"{subject}: needs data and updates of one dtype")


def _reducible(
    subject: str,
    data: TensorStructInfo,
    updates: TensorStructInfo,
    reduction: str,
    allowed: tuple[str, ...],
) -> None:
    _one_dtype(subject, data, updates)
    if reduction not in allowed:
        choice = ", ".join(allowed)
        raise IllTyped(f'{subject}: reduction is "{reduction}", needs one of: {choice}')
    if reduction == "mean" and data.dtype is not None and not is_float(data.dtype):
        raise IllTyped(f'{subject}: reduction "mean" needs floating-point tensors')


def _same_shape(subject: str, updates: TensorStructInfo, shape: Shape | None, ndim: int) -> None:
    """Raise `IllTyped` for `updates` that are proven to have another `shape` or rank."""
    if ndim >= 0 and updates.ndim not in (-1, ndim):
        raise IllTyped(f"{subject}: needs updates of rank {ndim}")
    if shape is None or updates.dims is None:
        return
    if any(differ(a, b) for a, b in zip(shape, updates.dims, strict=True)):
        raise IllTyped(f"{subject}: needs updates of shape {shape_text(shape)}")


def _may_broadcast(values: Shape, target: Shape) -> bool:
    if len(values) > len(target):
        return False
    try:
        result = broadcast_shapes(values, target)
    except ValueError:
        return False
    return result is None or not any(map(differ, result, target))
