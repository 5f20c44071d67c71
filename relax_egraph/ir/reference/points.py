"""Images read at points between their pixels: grids of points, and regions of interest."""

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from relax_egraph.ir.ops.resizing import TAPS
from relax_egraph.ir.reference.array import Array, Reference

_ALPHA = -0.75
"""The coefficient of the cubic kernel."""

_MOST_POINTS = 1 << 12
"""The most points of a bin along an axis; images have fewer pixels."""


def _grid_sample(
    data: Array, grid: Array, *, method: str, padding_mode: str, align_corners: bool
) -> Array:
    extents = data.shape[2:]
    if len(grid) != len(data) or grid.shape[-1] != len(extents):
        raise ValueError(f"the grid of {grid.shape} has no points for images of {data.shape}")
    if 0 in extents:
        return np.zeros((*data.shape[:2], *grid.shape[1:-1]), data.dtype)
    points = grid.astype(grid.dtype if grid.dtype == np.float64 else np.float32)
    along = [
        _neighbours(points[..., -1 - k], extent, method, padding_mode, align_corners)
        for k, extent in enumerate(extents)
    ]
    return _gathered(data, np.arange(len(data)).reshape(-1, *(1,) * len(extents)), along)


def _gathered(data: Array, batch: Array, along: Sequence[Sequence[tuple[Array, Array]]]) -> Array:
    """The sums of weighted pixels; `along` has for each axis the pixels and their weights."""
    total = np.zeros(())
    for taps in itertools.product(*along):
        pixels = data[(batch, slice(None), *(place for place, _ in taps))].astype(np.float64)
        weight = math.prod((w.astype(np.float64) for _, w in taps), start=np.ones(()))
        total = total + pixels * weight[..., None]
    return np.moveaxis(total, -1, 1).astype(data.dtype)


def _neighbours(
    at: Array, extent: int, method: str, beyond: str, align_corners: bool
) -> list[tuple[Array, Array]]:
    """The pixels around points along an axis, and their weights."""
    one = at.dtype.type(1)
    if align_corners:
        at, first, last = (at + one) / 2 * (extent - 1), 0.0, extent - 1.0
    else:
        at, first, last = ((at + one) * extent - one) / 2, -0.5, extent - 0.5
    if method == "nearest_neighbor":
        at = np.rint(at)
    if beyond == "border":
        at = np.where((at < first) | (at > last), np.clip(at, 0, extent - 1), at)
    elif beyond == "reflection":
        at = _reflected(at, first, last)
    reach = 4
    at = np.where(at >= -reach, at, -reach)
    at = np.where(at <= extent + reach, at, extent + reach)
    whole = np.floor(at)
    part, pixel = at - whole, whole.astype(np.int64)
    taps = TAPS[method]
    neighbours: list[tuple[Array, Array]] = []
    for tap, weight in enumerate(_weights(part, taps)):
        place = pixel + tap - (taps - 1) // 2
        if beyond == "zeros":
            weight = np.where((place < 0) | (place >= extent), 0, weight)
        elif beyond == "reflection":
            period = 2 * extent - 2 * align_corners
            turn = place % max(period, 1)
            place = np.minimum(turn, period - 1 + align_corners - turn)
        neighbours.append((np.clip(place, 0, extent - 1), weight))
    return neighbours


def _reflected(at: Array, first: float, last: float) -> Array:
    """Points beyond `first` and `last`, reflected there as often as needed."""
    span = max(last - first, 0)
    over = np.maximum(first - at, at - last)
    times = np.trunc(over / (span or 1))
    rest = over - times * span
    from_first = (at < first) == (times % 2 == 0)
    reflected = np.where(from_first, first + rest, last - rest)
    return np.where(over > 0, reflected if span else first, at)


def _weights(t: Array, taps: int) -> list[Array]:
    if taps == 1:
        return [np.ones_like(t)]
    if taps == 2:
        return [1 - t, t]
    a = _ALPHA
    return [
        a * (t**3 - 2 * t**2 + t),
        (a + 2) * t**3 - (a + 3) * t**2 + 1,
        -(a + 2) * t**3 + (2 * a + 3) * t**2 - a * t,
        a * (t**2 - t**3),
    ]


# --- regions ----------------------------------------------------------------------------


def _roi_align(
    data: Array,
    rois: Array,
    batch_indices: Array,
    *,
    pooled_size: tuple[int, ...],
    spatial_scale: float,
    sampling_ratio: int,
    mode: str,
    aligned: bool,
) -> Array:
    if rois.shape != (len(batch_indices), 4):
        raise ValueError(f"{len(batch_indices)} indices for boxes of shape {rois.shape}")
    result = np.zeros((len(rois), data.shape[1], *pooled_size), data.dtype)
    if 0 in (data.shape[0], *data.shape[2:]):
        return result
    boxes = rois.astype(np.result_type(rois.dtype, np.float32))
    boxes = boxes * boxes.dtype.type(spatial_scale) - boxes.dtype.type(0.5 if aligned else 0)
    images = np.clip(batch_indices.astype(np.int64), 0, len(data) - 1)
    for r, (box, image) in enumerate(zip(boxes, images, strict=True)):
        # a box is (x1, y1, x2, y2), an image has y before x
        along = [
            bins_along(box[1 - k], box[3 - k], data.shape[2 + k], bins, sampling_ratio, aligned)
            for k, bins in enumerate(pooled_size)
        ]
        result[r] = _pooled(data[image], along, mode)
    return result


def bins_along(
    start: Array, end: Array, extent: int, bins: int, sampling_ratio: int, aligned: bool
) -> list[tuple[Array, Array]]:
    """Two pixels around each point of each bin along an axis, (bins, points), and their weights."""
    length = end - start
    if not aligned:
        length = np.maximum(length, 1)
    each = length / bins
    count = sampling_ratio or max(int(np.ceil(np.nan_to_num(each))), 0)
    if count > _MOST_POINTS:
        raise ValueError(f"a bin of a box has {count} points along an axis")
    points = (np.arange(count, dtype=start.dtype) + start.dtype.type(0.5)) * each / max(count, 1)
    at = start + np.arange(bins, dtype=start.dtype)[:, None] * each + points
    inside = (at >= -1) & (at <= extent)
    at = np.clip(np.where(inside, at, 0), 0, extent - 1)
    low = np.floor(at)
    part, pixel = at - low, low.astype(np.int64)
    after = np.minimum(pixel + 1, extent - 1)
    return [(pixel, np.where(inside, 1 - part, 0)), (after, np.where(inside, part, 0))]


def _pooled(image: Array, along: Sequence[Sequence[tuple[Array, Array]]], mode: str) -> Array:
    """The mean of the points of each bin, or the greatest of their weighted pixels."""
    rows, columns = along
    terms = [
        image[:, y[:, :, None, None], x].astype(np.float64) * (u[:, :, None, None] * v)
        for y, u in rows
        for x, v in columns
    ]
    points = terms[0].shape[2] * terms[0].shape[4]
    if mode == "max" and points:
        return np.max(terms, axis=(0, 3, 5))
    return np.sum(terms, axis=(0, 3, 5)) / max(points, 1)


# --- boxes ------------------------------------------------------------------------------


def _non_max_suppression(
    boxes: Array,
    scores: Array,
    *,
    max_output_boxes_per_class: int,
    iou_threshold: float,
    score_threshold: float | None,
    center_point_box: bool,
) -> Array:
    if boxes.shape != (len(scores), scores.shape[2], 4):
        raise ValueError(f"the boxes of {boxes.shape} are not those of scores of {scores.shape}")
    chosen: list[tuple[int, int, int]] = []
    for n, of_class in itertools.product(range(len(boxes)), range(scores.shape[1])):
        rated = scores[n, of_class]
        order = np.argsort(-rated, kind="stable")
        if score_threshold is not None:
            order = order[rated[order] > rated.dtype.type(score_threshold)]
        corners = _corners(boxes[n], center_point_box)
        for box in _apart(corners, order, max_output_boxes_per_class, iou_threshold):
            chosen.append((n, of_class, box))
    return np.array(chosen, np.int64).reshape(-1, 3)


def _corners(boxes: Array, of_centers: bool) -> tuple[Array, Array]:
    """The lower and the upper corner of each box."""
    first, second = boxes[:, :2], boxes[:, 2:]
    if of_centers:
        return first - second / 2, first + second / 2
    return np.minimum(first, second), np.maximum(first, second)


def _apart(
    corners: tuple[Array, Array], order: Array, most: int, iou_threshold: float
) -> list[int]:
    """The boxes, in `order`, that overlap no earlier kept box by more than `iou_threshold`."""
    lower, upper = corners
    area = np.prod(upper - lower, axis=1)
    threshold = area.dtype.type(iou_threshold)
    kept: list[int] = []
    while len(order) and len(kept) < most:
        best, order = int(order[0]), order[1:]
        kept.append(best)
        sides = np.minimum(upper[order], upper[best]) - np.maximum(lower[order], lower[best])
        common = np.prod(np.maximum(sides, 0), axis=1)
        union = area[order] + area[best] - common
        is_box = (common > 0) & (area[order] > 0) & (area[best] > 0) & (union > 0)
        with np.errstate(invalid="ignore", divide="ignore"):
            order = order[~(is_box & (common / union > threshold))]
    return kept


REFERENCE: Mapping[str, Reference] = {
    "image.grid_sample": _grid_sample,
    "image.roi_align": _roi_align,
    "image.non_max_suppression": _non_max_suppression,
}
