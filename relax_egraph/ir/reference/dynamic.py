"""Operators whose result's shape depends on data, and shapes and dimensions as values."""

from collections.abc import Mapping

import numpy as np

from relax_egraph.ir.dtypes import converted
from relax_egraph.ir.reference.array import Array, Reference


def _unique(
    x: Array,
    *,
    sorted: bool,
    return_index: bool,
    return_inverse: bool,
    return_counts: bool,
    axis: int | None,
) -> Array | tuple[Array, ...]:
    values, index, inverse, counts = np.unique(x, True, True, True, axis)
    order = np.arange(len(index)) if sorted else np.argsort(index)
    place = np.argsort(order)  # of each distinct element, in the requested order
    wanted = (
        (True, np.take(values, order, 0 if axis is None else axis)),
        (return_index, index[order]),
        (return_inverse, place[inverse.reshape(-1)]),
        (return_counts, counts[order]),
    )
    results = [array for is_wanted, array in wanted if is_wanted]
    return tuple(results) if len(results) > 1 else results[0]


def _nonzero(x: Array) -> Array:
    return np.ascontiguousarray(np.argwhere(x).T)


def _size(x: Array) -> Array:
    return np.asarray(x.size, np.int64)


def _shape_of(x: Array) -> tuple[int, ...]:
    return x.shape


def _shape_to_tensor(shape: tuple[int, ...]) -> Array:
    return np.asarray(shape, np.int64)


def _tensor_to_shape(tensor: Array) -> tuple[int, ...]:
    if tensor.ndim != 1 or (tensor < 0).any():
        raise ValueError(f"the elements are no extents of a shape: {tensor.tolist()}")
    return tuple(map(int, tensor))


def _prim_to_tensor(value: float, *, dtype: str) -> Array:
    return converted(np.asarray(value), dtype)


def _prim_less_equal(a: int, b: int) -> Array:
    return np.asarray(a <= b)


REFERENCE: Mapping[str, Reference] = {
    "unique": _unique,
    "nonzero": _nonzero,
    "size": _size,
    "shape_of": _shape_of,
    "shape_to_tensor": _shape_to_tensor,
    "tensor_to_shape": _tensor_to_shape,
    "prim_to_tensor": _prim_to_tensor,
    "prim_less_equal": _prim_less_equal,
}
