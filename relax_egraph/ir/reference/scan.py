"""Scans along an axis: cumulative sums and products."""

from collections.abc import Mapping
from functools import partial

import numpy as np

from relax_egraph.ir.dtypes import converted
from relax_egraph.ir.reference.array import Array, Reference


def _scan(
    combine: np.ufunc,
    identity: int,
    data: Array,
    *,
    axis: int | None,
    dtype: str | None,
    exclusive: bool,
) -> Array:
    result = np.dtype(dtype or data.dtype)
    terms = converted(data, result.name)
    if axis is None:
        terms, axis = terms.reshape(-1), 0
    if exclusive and terms.shape[axis]:
        first = np.full_like(np.take(terms, [0], axis), identity)
        terms = np.concatenate([first, np.delete(terms, -1, axis)], axis)
    wide = np.dtype(np.float64) if result.kind == "f" else result
    return combine.accumulate(terms, axis, wide).astype(result)


REFERENCE: Mapping[str, Reference] = {
    "cumsum": partial(_scan, np.add, 0),
    "cumprod": partial(_scan, np.multiply, 1),
}
