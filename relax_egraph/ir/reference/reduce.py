"""Reductions over axes."""

import math
from collections.abc import Mapping

import numpy as np

from relax_egraph.ir.dtypes import is_float, name_of
from relax_egraph.ir.message import no_element
from relax_egraph.ir.reference.array import (
    Array,
    Axes,
    Reference,
    greatest,
    in_double,
    least,
)


def _in_order(x: Array) -> Array:
    """`x` in row-major order: the layout in memory decides in which order numpy adds."""
    return np.asarray(x, order="C")


def _sum(x: Array, *, axis: Axes, keepdims: bool) -> Array:
    dtype = np.float64 if is_float(name_of(x.dtype)) else x.dtype
    return np.asarray(np.sum(_in_order(x), axis=axis, keepdims=keepdims, dtype=dtype)).astype(
        x.dtype
    )


def _mean(x: Array, *, axis: Axes, keepdims: bool) -> Array:
    total = np.asarray(np.sum(_in_order(x), axis=axis, keepdims=keepdims, dtype=np.float64))
    counted = range(x.ndim) if axis is None else axis
    count = np.float64(math.prod(x.shape[a] for a in counted))
    return (total / count).astype(x.dtype)


def _max(x: Array, *, axis: Axes, keepdims: bool) -> Array:
    return np.max(x, axis=axis, keepdims=keepdims, initial=least(x.dtype))


def _min(x: Array, *, axis: Axes, keepdims: bool) -> Array:
    return np.min(x, axis=axis, keepdims=keepdims, initial=greatest(x.dtype))


def _prod(x: Array, *, axis: Axes, keepdims: bool) -> Array:
    dtype = np.float64 if is_float(name_of(x.dtype)) else x.dtype
    return np.asarray(np.prod(_in_order(x), axis=axis, keepdims=keepdims, dtype=dtype)).astype(
        x.dtype
    )


def _variance(x: Array, *, axis: Axes, keepdims: bool) -> Array:
    deviation = x - _mean(x, axis=axis, keepdims=True)
    return _mean(deviation * deviation, axis=axis, keepdims=keepdims)


def _std(x: Array, *, axis: Axes, keepdims: bool) -> Array:
    return np.sqrt(_variance(x, axis=axis, keepdims=keepdims))


def _median(data: Array, *, axis: Axes, keepdims: bool) -> Array | tuple[Array, Array]:
    places = [a % data.ndim for a in (range(data.ndim) if axis is None else axis)]
    kept = [k for k in range(data.ndim) if k not in places]
    last = np.transpose(data, (*kept, *places))
    shape = last.shape[: len(kept)]
    count = math.prod(last.shape[len(kept) :])
    if count == 0:
        raise ValueError(no_element(axis))
    rows = last.reshape(*shape, count)
    index = np.argsort(rows, axis=-1, kind="stable")[..., (count - 1) // 2]
    values = np.take_along_axis(rows, index[..., None], axis=-1)
    if keepdims:
        shape = tuple(1 if k in places else d for k, d in enumerate(data.shape))
    if axis is None or len(axis) != 1:
        return values.reshape(shape)
    return values.reshape(shape), index.reshape(shape)


def _collapse_sum_to(data: Array, shape: tuple[int, ...]) -> Array:
    extra = data.ndim - len(shape)
    if extra < 0 or any(w not in (1, h) for w, h in zip(shape, data.shape[extra:], strict=True)):
        raise ValueError("the shape does not broadcast to the operand's")
    repeated = [k + extra for k, w in enumerate(shape) if w == 1]
    return _sum(data, axis=(*range(extra), *repeated), keepdims=True).reshape(shape)


def _collapse_sum_like(data: Array, collapse_target: Array) -> Array:
    return _collapse_sum_to(data, collapse_target.shape)


REFERENCE: Mapping[str, Reference] = {
    "sum": _sum,
    "max": _max,
    "min": _min,
    "mean": _mean,
    "prod": _prod,
    "variance": in_double(_variance),
    "std": in_double(_std),
    "median": _median,
    "collapse_sum_like": _collapse_sum_like,
    "collapse_sum_to": _collapse_sum_to,
}
