"""Images: padding, the shuffle of pixels, resizing, and grids of points in them."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from relax_egraph.ir.dtypes import converted
from relax_egraph.ir.ops.image import pad_pairs
from relax_egraph.ir.ops.resizing import CROP, TAPS, Resize, resizing
from relax_egraph.ir.reference.array import Array, Reference


def _pad(x: Array, *, pad_width: tuple[int, ...], pad_mode: str, pad_value: float) -> Array:
    pairs = pad_pairs("R.nn.pad", x.ndim, pad_width, pad_mode)
    fill = converted(np.asarray(pad_value), x.dtype.name)
    if pad_mode == "constant" or x.size == 0:
        return np.pad(x, pairs, constant_values=fill) if pairs else x
    for axis, (before, after) in enumerate(pairs):
        extent = x.shape[axis]
        at = np.arange(-before, extent + after)
        if pad_mode == "replicate":
            at = np.clip(at, 0, extent - 1)
        elif pad_mode == "circular":
            at = at % extent
        else:
            at = at % max(2 * (extent - 1), 1)
            at = np.minimum(at, 2 * (extent - 1) - at)
        x = np.take(x, at, axis)
    return x


def _pixel_shuffle(x: Array, *, upscale_factor: int) -> Array:
    r = upscale_factor
    *batch, channels, height, width = x.shape
    if channels % r**2:
        raise ValueError(f"{channels} channels are no multiple of {r**2}")
    rank = len(batch)
    split = x.reshape(*batch, channels // r**2, r, r, height, width)
    order = [*range(rank), *(rank + k for k in (0, 3, 1, 4, 2))]
    return split.transpose(order).reshape(*batch, channels // r**2, height * r, width * r)


def _resize(rank: int, data: Array, size: tuple[int, ...], **attrs: Any) -> Array:
    attributes = resizing("R.image.resize", rank, **attrs)
    dtype = np.dtype(attributes.out_dtype or data.dtype)
    x = np.transpose(data, attributes.data)
    shape = (*x.shape[:2], *size)
    if len(size) != rank or min(size) < 0:
        raise ValueError(f"the size {size} has not {rank} extents of 0 or more")
    if 0 in x.shape[2:]:
        result = np.zeros(shape, dtype)
    elif attributes.method == "nearest_neighbor":
        for k, target in enumerate(size):
            at = _nearest(attributes, *_coordinates(attributes, k, x.shape[2 + k], target))
            x = np.take(x, np.clip(at, 0, x.shape[2 + k] - 1), 2 + k)
        result = converted(x, dtype.name)
    else:
        # whole weights where possible, divided by their scale at the end
        total, scale = x.astype(np.float64), np.ones(size)
        for k, target in enumerate(size):
            extent, axis = x.shape[2 + k], 2 + k
            whole, rest, divisor = _coordinates(attributes, k, extent, target)
            total = sum(
                np.take(total, np.clip(whole + offset, 0, extent - 1), axis)
                * _along(k, rank, weight)
                for offset, weight in _weights(attributes, extent, whole, rest, divisor)
            )
            scale = scale * _along(k, rank, _scale(attributes, extent, whole, rest, divisor))
        result = converted(total / scale, dtype.name)
    if attributes.mode == CROP:
        for k, target in enumerate(size):
            extent = data.shape[attributes.data[2 + k]]
            whole, rest, _ = _coordinates(attributes, k, extent, target)
            outside = _along(k, rank, (whole < 0) | (whole + (rest > 0) > extent - 1))
            beyond = converted(np.asarray(attributes.extrapolation), dtype.name)
            result = np.where(outside, beyond, result)
    return np.transpose(result, np.argsort(attributes.data))


def _along(k: int, rank: int, values: Array) -> Array:
    """`values` along spatial axis `k` of `rank`."""
    return values.reshape([-1 if axis == k else 1 for axis in range(rank)])


def _coordinates(
    attributes: Resize, k: int, extent: int, target: int
) -> tuple[Array, Array, float]:
    """The source of each result: ``whole + rest / divisor``, with ``0 <= rest < divisor``."""
    i = np.arange(target)
    if attributes.mode == CROP:
        start, end = attributes.roi[k]
        at = np.full(target, 0.5 * (start + end) * (extent - 1))
        if target > 1:
            at = i * (end - start) * (extent - 1) / (target - 1) + start * (extent - 1)
        return np.floor(at).astype(np.int64), at - np.floor(at), 1.0
    above, below = _fraction(attributes.mode, i, extent, target)
    return above // below, (above % below).astype(np.float64), float(below)


def _fraction(mode: str, i: Array, extent: int, target: int) -> tuple[Array, int]:
    match mode:
        case "half_pixel":
            return (2 * i + 1) * extent - target, 2 * target
        case "pytorch_half_pixel":
            return ((2 * i + 1) * extent - target, 2 * target) if target > 1 else (0 * i, 1)
        case "tf_half_pixel_for_nn":
            return (2 * i + 1) * extent, 2 * target
        case "align_corners":
            return i * (extent - 1), max(target - 1, 1)
        case _:
            return i * extent, target


def _nearest(attributes: Resize, whole: Array, rest: Array, divisor: float) -> Array:
    match attributes.rounding:
        case "floor":
            return whole
        case "ceil":
            return whole + (rest > 0)
        case "round_prefer_floor":
            return whole + (2 * rest > divisor)
        case "round_prefer_ceil":
            return whole + (2 * rest >= divisor)
        case _:
            return whole + np.where(2 * rest == divisor, whole % 2, 2 * rest > divisor)


def _weights(
    attributes: Resize, extent: int, whole: Array, rest: Array, divisor: float
) -> list[tuple[int, Array]]:
    """The pixels that are read, by their distance from `whole`, and their weights."""
    if TAPS[attributes.method] == 2:
        return [(0, divisor - rest), (1, rest)]
    t, a = rest / divisor, attributes.alpha
    weights = [
        (-1, a * (t**3 - 2 * t**2 + t)),
        (0, (a + 2) * t**3 - (a + 3) * t**2 + 1),
        (1, -(a + 2) * t**3 + (2 * a + 3) * t**2 - a * t),
        (2, a * (t**2 - t**3)),
    ]
    if not attributes.exclude:
        return weights
    return [
        (offset, np.where((whole + offset < 0) | (whole + offset >= extent), 0, weight))
        for offset, weight in weights
    ]


def _scale(attributes: Resize, extent: int, whole: Array, rest: Array, divisor: float) -> Array:
    """The sum of the weights; 1 where that is 0."""
    if TAPS[attributes.method] == 2:
        return np.full(rest.shape, divisor)
    if not attributes.exclude:
        return np.ones(rest.shape)
    total = np.asarray(sum(w for _, w in _weights(attributes, extent, whole, rest, divisor)))
    return np.where(total == 0, 1, total)


def _affine_grid(data: Array, size: tuple[int, ...], *, align_corners: bool) -> Array:
    rank = len(size)
    if data.shape[1:] != (rank, rank + 1):
        raise ValueError(f"the matrices are no {rank} by {rank + 1}")
    points = np.ones((rank + 1, *size))
    for k, extent in enumerate(size):
        count = max(extent - 1, 1) if align_corners else max(extent, 1)
        points[rank - 1 - k] = _along(k, rank, (2 * np.arange(extent) + 1 - extent) / count)
    return np.einsum("nkp,p...->nk...", data.astype(np.float64), points).astype(data.dtype)


REFERENCE: Mapping[str, Reference] = {
    "nn.pad": _pad,
    "nn.pixel_shuffle": _pixel_shuffle,
    "image.affine_grid": _affine_grid,
    "image.resize2d": partial(_resize, 2),
    "image.resize3d": partial(_resize, 3),
}
