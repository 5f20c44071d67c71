"""Sorting along an axis."""

from collections.abc import Mapping

import numpy as np

from relax_egraph.ir.dtypes import is_float, name_of
from relax_egraph.ir.reference.array import Array, Reference


def _order(x: Array, axis: int, descending: bool) -> Array:
    """The indices in stable order; NaN, which negation keeps, comes last."""
    turned = -x if is_float(name_of(x.dtype)) else ~x  # ~x = -1 - x has no overflow
    return np.argsort(turned if descending else x, axis, kind="stable")


def _sort(x: Array, *, axis: int, descending: bool) -> Array:
    return np.take_along_axis(x, _order(x, axis, descending), axis)


def _argsort(data: Array, *, axis: int, descending: bool, dtype: str) -> Array:
    return _order(data, axis, descending).astype(dtype)


def _topk(
    data: Array, *, k: int, axis: int, ret_type: str, largest: bool, dtype: str
) -> Array | tuple[Array, Array]:
    count = data.shape[axis] if k < 1 else min(k, data.shape[axis])
    indices = np.take(_order(data, axis, largest), range(count), axis)
    values = np.take_along_axis(data, indices, axis)
    if ret_type == "both":
        return values, indices.astype(dtype)
    return values if ret_type == "values" else indices.astype(dtype)


REFERENCE: Mapping[str, Reference] = {
    "sort": _sort,
    "argsort": _argsort,
    "topk": _topk,
}
