"""Tensors that are defined by a shape and a rule."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from relax_egraph.ir.dtypes import converted, name_of
from relax_egraph.ir.reference.array import Array, Reference

Shape = tuple[int, ...]


def _full(shape: Shape, fill_value: Array, *, dtype: str | None) -> Array:
    filled = np.full(shape, fill_value, fill_value.dtype)
    return converted(filled, dtype or name_of(filled.dtype))


def _full_like(x: Array, fill_value: Array, *, dtype: str | None) -> Array:
    return _full(x.shape, fill_value, dtype=dtype or name_of(x.dtype))


def _ones_like(x: Array, *, dtype: str | None) -> Array:
    return np.ones(x.shape, dtype or x.dtype)


def _zeros_like(x: Array, *, dtype: str | None) -> Array:
    return np.zeros(x.shape, dtype or x.dtype)


def _arange(start: Any, end: Any = None, step: Any = 1, *, dtype: str | None) -> Array:
    first, last = (0, start) if end is None else (start, end)
    first, last, step = (np.asarray(v).item() for v in (first, last, step))
    has_float = any(isinstance(v, float) for v in (first, last, step))
    if step == 0:
        raise ValueError("step is 0, needs another number")
    exact = (last - first) / step if has_float else -((first - last) // step)
    if not math.isfinite(exact):
        raise ValueError(f"from {first} to {last} by {step} there are not finitely many numbers")
    count = max(math.ceil(exact), 0)
    wanted = np.dtype(dtype or ("float32" if has_float else "int64"))
    values = first + np.arange(count) * step
    return (converted(values, "int64") if wanted.kind in "iu" else values).astype(wanted)


def _one_hot(indices: Array, on_value: Any, off_value: Any, *, depth: int, axis: int) -> Array:
    place = axis % (indices.ndim + 1)
    along = np.arange(depth).reshape(-1, *(1,) * (indices.ndim - place))
    is_on = np.expand_dims(indices.astype(np.int64), place) == along
    return np.where(is_on, np.asarray(on_value), np.asarray(off_value))


def _eye(n: int, m: int | None = None, k: int = 0, *, dtype: str) -> Array:
    return np.eye(n, n if m is None else m, k, dtype)


def _eye_like(x: Array, k: int = 0, *, dtype: str | None) -> Array:
    rows, columns = x.shape
    return np.eye(rows, columns, k, dtype or x.dtype)


def _hamming_window(
    window_size: int, periodic: int = 1, alpha: float = 0.54, beta: float = 0.46, *, dtype: str
) -> Array:
    if window_size == 1:
        return np.ones(1, dtype)
    last = window_size if periodic else window_size - 1
    angle = np.arange(window_size) * (2 * np.pi / max(last, 1))
    return np.asarray(float(alpha) - float(beta) * np.cos(angle)).astype(dtype)


REFERENCE: Mapping[str, Reference] = {
    "full": _full,
    "full_like": _full_like,
    "ones": np.ones,
    "ones_like": _ones_like,
    "zeros": np.zeros,
    "zeros_like": _zeros_like,
    "arange": _arange,
    "one_hot": _one_hot,
    "eye": _eye,
    "eye_like": _eye_like,
    "tril": np.tril,
    "triu": np.triu,
    "hamming_window": _hamming_window,
}
