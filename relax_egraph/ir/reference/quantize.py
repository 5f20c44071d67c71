"""Between floating-point numbers and scaled integers."""

from collections.abc import Mapping

import numpy as np

from relax_egraph.ir.reference.array import Array, Reference


def _quantize(data: Array, scale: Array, zero_point: Array, *, axis: int, out_dtype: str) -> Array:
    quotient = np.nan_to_num(data / _along(data, scale, axis), nan=0, posinf=np.inf, neginf=-np.inf)
    shifted = np.rint(quotient).astype(np.float64) + _along(data, zero_point, axis)
    limits = np.iinfo(out_dtype)
    return np.clip(shifted, limits.min, limits.max).astype(out_dtype)


def _dequantize(
    data: Array, scale: Array, zero_point: Array, *, axis: int, out_dtype: str
) -> Array:
    difference = data.astype(np.int64) - _along(data, zero_point, axis).astype(np.int64)
    return difference.astype(out_dtype) * _along(data, scale, axis).astype(out_dtype)


def _along(data: Array, parameter: Array, axis: int) -> Array:
    """`parameter`, a number or a vector along `axis`, so that it broadcasts to `data`."""
    if parameter.size == 1 and parameter.ndim < 2:
        return parameter.reshape(())
    if data.ndim == 0 or parameter.shape != (data.shape[axis],):
        raise ValueError(f"a parameter of shape {parameter.shape} is no vector along axis {axis}")
    shape = [1] * data.ndim
    shape[axis] = parameter.size
    return parameter.reshape(shape)


REFERENCE: Mapping[str, Reference] = {"quantize": _quantize, "dequantize": _dequantize}
