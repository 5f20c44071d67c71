"""Regions of images: what detectors do with boxes."""

import math
from collections.abc import Mapping

import numpy as np

from relax_egraph.ir.reference.array import Array, Reference
from relax_egraph.ir.reference.points import bins_along


def _roi_align(
    data: Array,
    rois: Array,
    *,
    pooled_size: tuple[int, ...],
    spatial_scale: float,
    sample_ratio: int,
    aligned: bool,
    layout: str,
    mode: str,
) -> Array:
    images, size = _images(data, rois, pooled_size, layout)
    result = np.zeros((len(rois), images.shape[1], *size), data.dtype)
    regions = rois.astype(np.result_type(rois.dtype, np.float32))
    corners = regions[:, 1:] * regions.dtype.type(spatial_scale)
    for r, (image, box) in enumerate(zip(_numbers(images, rois), corners, strict=True)):
        ratio = max(sample_ratio, 0)
        rows, columns = (
            bins_along(box[1 - k], box[3 - k], images.shape[2 + k], bins, ratio, aligned)
            for k, bins in enumerate(size)
        )
        if 0 in images.shape:
            continue
        points = sum(
            images[image][:, y[:, :, None, None], x].astype(np.float64) * (u[:, :, None, None] * v)
            for y, u in rows
            for x, v in columns
        )
        counted = np.asarray(points)
        empty = 0 in (counted.shape[2], counted.shape[4])
        if mode == "avg":
            count = counted.shape[2] * counted.shape[4]
            result[r] = np.sum(counted, axis=(2, 4)) / max(count, 1)
        elif not empty:
            result[r] = np.max(counted, axis=(2, 4))
        else:
            result[r] = -np.inf
    return _laid_out(result, layout)


def _roi_pool(
    data: Array,
    rois: Array,
    *,
    pooled_size: tuple[int, ...],
    spatial_scale: float,
    layout: str,
) -> Array:
    images, size = _images(data, rois, pooled_size, layout)
    result = np.zeros((len(rois), images.shape[1], *size), data.dtype)
    for r, (image, roi) in enumerate(zip(_numbers(images, rois), rois, strict=True)):
        corners = [float(c) * spatial_scale for c in roi[1:]]
        if not all(map(math.isfinite, corners)):
            continue
        x1, y1, x2, y2 = (math.floor(c + 0.5) for c in corners)
        for at in np.ndindex(*size):
            spans = [
                _span(first, last, extent, place, bins)
                for first, last, extent, place, bins in zip(
                    (y1, x1), (y2, x2), images.shape[2:], at, size, strict=True
                )
            ]
            pixels = images[(slice(image, image + 1), slice(None), *spans)]
            if pixels.size:
                result[(r, slice(None), *at)] = pixels.max(axis=(0, 2, 3))
    return _laid_out(result, layout)


def _span(first: int, last: int, extent: int, place: int, bins: int) -> slice:
    """The pixels of a bin of a region along an axis."""
    each = max(last - first + 1, 1) / bins
    begin, end = math.floor(place * each) + first, math.ceil((place + 1) * each) + first
    return slice(min(max(begin, 0), extent), min(max(end, 0), extent))


def _images(
    data: Array, rois: Array, pooled_size: tuple[int, ...], layout: str
) -> tuple[Array, tuple[int, int]]:
    if rois.ndim != 2 or rois.shape[1] != 5 or data.ndim != 4:
        raise ValueError(f"images of {data.shape} and regions of {rois.shape}")
    images = data if layout == "NCHW" else data.transpose(0, 3, 1, 2)
    return images, (pooled_size[0], pooled_size[-1])


def _numbers(images: Array, rois: Array) -> Array:
    """The image of each region."""
    return np.clip(rois[:, 0].astype(np.int64), 0, max(len(images) - 1, 0))


def _laid_out(result: Array, layout: str) -> Array:
    return result if layout == "NCHW" else np.ascontiguousarray(result.transpose(0, 2, 3, 1))


def _multibox_transform_loc(
    cls_pred: Array,
    loc_pred: Array,
    anchor: Array,
    *,
    clip: bool,
    threshold: float,
    variances: tuple[float, ...],
    keep_background: bool,
) -> tuple[Array, Array]:
    images, classes, boxes = cls_pred.shape
    if loc_pred.shape != (images, 4 * boxes) or anchor.shape != (1, boxes, 4):
        raise ValueError(f"offsets of {loc_pred.shape} from anchors of {anchor.shape}")
    offsets = loc_pred.astype(np.float64).reshape(images, boxes, 4) * variances
    left, top, right, bottom = np.moveaxis(anchor.astype(np.float64), -1, 0)
    width, height = right - left, bottom - top
    x = offsets[..., 0] * width + (left + right) / 2
    y = offsets[..., 1] * height + (top + bottom) / 2
    dx = np.exp(offsets[..., 2]) * width / 2
    dy = np.exp(offsets[..., 3]) * height / 2
    corners = np.stack([y - dy, x - dx, y + dy, x + dx], -1)
    corners = np.clip(corners, 0, 1) if clip else corners
    logits = cls_pred.astype(np.float64)
    powers = np.exp(logits - logits.max(axis=1, keepdims=True, initial=-np.inf))
    scores = (powers / powers.sum(axis=1, keepdims=True)).astype(cls_pred.dtype)
    scores = scores * (scores >= scores.dtype.type(threshold))
    if not keep_background and classes:
        scores[:, 0] = 0
    return corners.astype(cls_pred.dtype), scores


REFERENCE: Mapping[str, Reference] = {
    "vision.roi_align": _roi_align,
    "vision.roi_pool": _roi_pool,
    "vision.multibox_transform_loc": _multibox_transform_loc,
}
