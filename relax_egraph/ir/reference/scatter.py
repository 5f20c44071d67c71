"""Scattering: writes at positions of index tensors, slices, and masks."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from relax_egraph.ir.reference.array import Array, Reference
from relax_egraph.ir.reference.index import along, last_axis, leading, rows


def _written(data: Array, at: Sequence[Array], updates: Array, reduction: str) -> Array:
    """A copy of `data` with `updates` combined, one after the other, into its elements at `at`.

    `at` are positions in the leading axes; the addressed elements have the shape of `updates`.
    """
    out = data.copy()
    if out.size == 0:
        return out
    rest = data.shape[len(at) :]
    number = rows(data, at, updates.shape[: updates.ndim - len(rest)])
    size = math.prod(rest)
    places = (number.reshape(-1, 1) * size + np.arange(size)).ravel()
    flat, terms = out.reshape(-1), updates.ravel()
    match reduction:
        case "update":
            flat[places] = terms
        case "mean":
            for place, term in zip(places, terms, strict=True):
                flat[place] = (flat[place] + term) / 2
        case _:
            _COMBINED[reduction].at(flat, places, terms)
    return out


_COMBINED = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def _scatter_elements(
    data: Array, indices: Array, updates: Array, *, axis: int, reduction: str
) -> Array:
    if indices.shape != updates.shape:
        raise ValueError("the indices and the updates have different shapes")
    return _written(data, along(data, indices, axis), updates, reduction)


def _scatter_nd(data: Array, indices: Array, updates: Array, *, reduction: str) -> Array:
    at = last_axis(data.shape, indices)
    if updates.shape != (*indices.shape[:-1], *data.shape[len(at) :]):
        raise ValueError("the updates do not have the shape of what is addressed")
    return _written(data, at, updates, reduction)


def _index_put(
    data: Array, indices: tuple[Array, ...], values: Array, *, accumulate: bool
) -> Array:
    at = leading(data, indices)
    target = (*at[0].shape, *data.shape[len(at) :])
    updates = np.broadcast_to(values, target)
    return _written(data, at, updates, "add" if accumulate else "update")


def _slice_scatter(
    input: Array, src: Array, start: int, end: int, step: int, *, axis: int
) -> Array:
    if step < 1:
        raise ValueError(f"the step is {step}, needs 1 or more")
    out = input.copy()
    view = np.moveaxis(out, axis, 0)[start:end:step]
    source = np.moveaxis(src, axis, 0)
    if view.shape != source.shape:
        raise ValueError("the source does not have the shape of the slice")
    view[...] = source
    return out


def _masked_fill(x: Array, mask: Array, *, value: float) -> Array:
    filled = np.asarray(value).astype(x.dtype)
    return np.where(mask, filled, x)


REFERENCE: Mapping[str, Reference] = {
    "scatter_elements": _scatter_elements,
    "scatter_nd": _scatter_nd,
    "index_put": _index_put,
    "slice_scatter": _slice_scatter,
    "masked_fill": _masked_fill,
}
