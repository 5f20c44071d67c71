"""Indexing: reads at positions of index tensors, and slices."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from relax_egraph.errors import RunError
from relax_egraph.ir.message import outside
from relax_egraph.ir.ops.slices import is_inbound
from relax_egraph.ir.reference.array import Array, Reference


def positions(indices: Array, extent: int) -> Array:
    """`indices` into an axis of `extent`, as ``int64``: from its end if negative, then clamped."""
    wide = indices.astype(np.int64)
    counted = np.where(wide < 0, wide + extent, wide)
    return np.clip(counted, 0, max(extent - 1, 0))


def rows(data: Array, at: Sequence[Array], where: tuple[int, ...]) -> Array:
    """The part of `data` that each point of `where` addresses, by positions in the leading axes.

    A part spans the other axes; parts are numbered in row-major order.
    """
    number = np.zeros(where, np.int64)
    for position, extent in zip(at, data.shape, strict=False):
        number = number * extent + position
    return number


def _read(data: Array, at: Sequence[Array], where: tuple[int, ...]) -> Array:
    """``data[at]`` of the leading axes, at each point of `where`; 0 where one has no element."""
    rest = data.shape[len(at) :]
    parts = data.reshape(math.prod(data.shape[: len(at)]), *rest)
    if not len(parts):
        return np.zeros((*where, *rest), data.dtype)
    return parts[rows(data, at, where)]


def _take(x: Array, indices: Array, *, axis: int | None, mode: str) -> Array:
    if axis is None and x.ndim != 1:
        raise ValueError("without an axis the tensor has rank 1")
    place = 0 if axis is None else axis % x.ndim
    extent = x.shape[place]
    wide = indices.astype(np.int64)
    match mode:
        case "clip":
            at = np.clip(wide, 0, max(extent - 1, 0))
        case "wrap":
            at = wide % max(extent, 1)
        case _:
            at = positions(wide, extent)
    values = _read(np.moveaxis(x, place, 0), (at,), at.shape)
    if mode == "nan":
        outside = (wide < 0) | (wide >= extent)
        spread = outside.reshape((*outside.shape, *(1,) * (x.ndim - 1)))
        values = np.where(spread, x.dtype.type(np.nan), values)
    return np.moveaxis(values, range(at.ndim), range(place, place + at.ndim))


def _check_indices(
    indices: Array,
    shape: tuple[int, ...],
    *,
    axes: tuple[int, ...],
    operator: str,
    from_end: bool,
) -> Array:
    if problem := outside(indices, shape, axes, operator, from_end):
        raise RunError(problem)
    return indices


def _gather_elements(data: Array, indices: Array, *, axis: int) -> Array:
    return _read(data, along(data, indices, axis), indices.shape)


def along(data: Array, indices: Array, axis: int) -> tuple[Array, ...]:
    """The position in every axis of each of `indices`: its own place, except along `axis`."""
    place = axis % data.ndim
    for k, (have, want) in enumerate(zip(data.shape, indices.shape, strict=True)):
        if k != place and want > have:
            raise ValueError(f"along axis {k} there are indices for {want} of {have} elements")
    own = np.indices(indices.shape)
    named = positions(indices, data.shape[place])
    return tuple(named if k == place else own[k] for k in range(data.ndim))


def _gather_nd(data: Array, indices: Array, *, batch_dims: int) -> Array:
    if data.shape[:batch_dims] != indices.shape[:batch_dims]:
        raise ValueError("the batch axes differ")
    where = indices.shape[:-1]
    batch = np.indices(where)[:batch_dims]
    return _read(data, (*batch, *last_axis(data.shape[batch_dims:], indices)), where)


def last_axis(shape: tuple[int, ...], indices: Array) -> tuple[Array, ...]:
    """The last axis of `indices`, split: one array of positions for each axis of `shape`."""
    if indices.shape[-1] > len(shape):
        raise ValueError(f"{indices.shape[-1]} indices into {len(shape)} axes")
    return tuple(positions(indices[..., k], shape[k]) for k in range(indices.shape[-1]))


def _index_tensor(data: Array, indices: tuple[Array, ...]) -> Array:
    at = leading(data, indices)
    return _read(data, at, at[0].shape)


def leading(data: Array, indices: tuple[Array, ...]) -> tuple[Array, ...]:
    """`indices` into the leading axes of `data`, broadcast."""
    at = [positions(i, extent) for i, extent in zip(indices, data.shape, strict=False)]
    return tuple(np.broadcast_arrays(*at))


def _strided_slice(
    x: Array,
    begin: tuple[int, ...],
    end: tuple[int, ...],
    *,
    axes: tuple[int, ...],
    strides: tuple[int, ...] | None,
    assume_inbound: bool,
) -> Array:
    cut = [slice(None)] * x.ndim
    for axis, a, b, step in zip(axes, begin, end, strides or (1,) * len(axes), strict=True):
        if assume_inbound and not is_inbound(x.shape[axis], a, b, step):
            raise ValueError(f"{a}:{b}:{step} is not within the extent {x.shape[axis]}")
        cut[axis] = slice(a, b, step)
    return x[tuple(cut)]


def _dynamic_strided_slice(x: Array, begin: Array, end: Array, strides: Array) -> Array:
    if not x.ndim == len(begin) == len(end) == len(strides):
        raise ValueError(f"needs {x.ndim} positions and strides")
    ends = zip(begin.tolist(), end.tolist(), strides.tolist(), strict=True)
    return x[tuple(slice(a, b, step) for a, b, step in ends)]


REFERENCE: Mapping[str, Reference] = {
    "take": _take,
    "check_indices": _check_indices,
    "gather_elements": _gather_elements,
    "gather_nd": _gather_nd,
    "index_tensor": _index_tensor,
    "strided_slice": _strided_slice,
    "dynamic_strided_slice": _dynamic_strided_slice,
}
