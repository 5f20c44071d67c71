"""The choice of boxes by their scores."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from relax_egraph.ir.reference.array import Array, Reference


def _get_valid_counts(
    data: Array, *, score_threshold: float, id_index: int, score_index: int
) -> tuple[Array, Array, Array]:
    valid = data[..., score_index] > data.dtype.type(score_threshold)
    if id_index >= 0:
        valid &= data[..., id_index] >= 0
    rows, numbers = np.full_like(data, -1), np.full(data.shape[:2], -1, np.int32)
    for n, of_image in enumerate(valid):
        chosen = np.flatnonzero(of_image)
        rows[n, : len(chosen)], numbers[n, : len(chosen)] = data[n, chosen], chosen
    return valid.sum(axis=1).astype(np.int32), rows, numbers


@dataclass(frozen=True, slots=True)
class _Suppression:
    """What one row does to a later one."""

    iou_threshold: float
    force_suppress: bool
    coord_start: int
    score_index: int
    id_index: int
    sigma: float
    least: float

    def chosen(self, rows: Array, most: int) -> list[int]:
        """The rows that stay, of `rows` by descending scores, at most `most`; lowers scores."""
        alive = rows[:, self.score_index] > self.least
        chosen: list[int] = []
        while alive.any() and (most < 0 or len(chosen) < most):
            scores = np.where(alive, rows[:, self.score_index], -np.inf)
            best = int(np.argmax(scores)) if self.sigma > 0 else int(np.argmax(alive))
            chosen.append(best)
            alive[best] = False
            corners = rows[:, self.coord_start : self.coord_start + 4]
            iou = _overlap(corners[best], corners)
            considered = alive & self._is_of_class(rows, best)
            gone = considered & (iou >= rows.dtype.type(self.iou_threshold))
            alive &= ~gone
            if self.sigma > 0:
                lowered = np.exp(iou**2 * rows.dtype.type(-0.5 / self.sigma))
                weight = np.where(considered & ~gone, lowered, 1)
                rows[:, self.score_index] *= weight
                alive &= rows[:, self.score_index] > self.least
        return chosen

    def _is_of_class(self, rows: Array, best: int) -> Array:
        if self.force_suppress or self.id_index < 0:
            return np.ones(len(rows), bool)
        return rows[:, self.id_index] == rows[best, self.id_index]


def _non_max_suppression(
    data: Array,
    valid_count: Array,
    indices: Array,
    *,
    max_output_size: int,
    iou_threshold: float,
    force_suppress: bool,
    top_k: int,
    coord_start: int,
    score_index: int,
    id_index: int,
    return_indices: bool,
    invalid_to_bottom: bool,
    soft_nms_sigma: float,
    score_threshold: float,
) -> Array | tuple[Array, ...]:
    if indices.shape != data.shape[:2] or valid_count.shape != data.shape[:1]:
        raise ValueError(f"indices of {indices.shape} and counts of {valid_count.shape}")
    soft = soft_nms_sigma > 0
    least = score_threshold if soft else 0.0
    most = max_output_size if soft or max_output_size > 0 else -1
    numbers = (iou_threshold, force_suppress, coord_start, score_index, id_index)
    suppression = _Suppression(*numbers, soft_nms_sigma, least)
    rows, kept = np.full_like(data, -1), np.full(indices.shape, -1, np.int32)
    counts = np.zeros((len(data), 1), np.int32)
    for n, of_image in enumerate(data):
        count = max(min(int(valid_count[n]), len(of_image)), 0)
        order = np.argsort(-of_image[:count, score_index], kind="stable")
        order = order[:top_k] if top_k > 0 else order
        ordered = of_image[order].copy()
        chosen = suppression.chosen(ordered, most)
        packed = return_indices or invalid_to_bottom or soft
        places = list(range(len(chosen))) if packed else chosen
        rows[n, places], counts[n] = ordered[chosen], len(chosen)
        kept[n, : len(chosen)] = indices[n, order[chosen]]
    if not return_indices:
        return rows
    return (rows, kept, counts) if soft else (kept, counts)


def _all_class_non_max_suppression(
    boxes: Array,
    scores: Array,
    max_output_boxes_per_class: Array,
    iou_threshold: Array,
    score_threshold: Array,
    *,
    output_format: str,
) -> tuple[Array, ...]:
    images, classes, count = scores.shape
    if boxes.shape != (images, count, 4):
        raise ValueError(f"the boxes of {boxes.shape} are not those of scores of {scores.shape}")
    most, least, share = (
        np.ravel(v)[0] for v in (max_output_boxes_per_class, score_threshold, iou_threshold)
    )
    chosen: list[list[tuple[int, int]]] = [[] for _ in range(images)]
    for n, of_class in itertools.product(range(images), range(classes)):
        rated, kept = scores[n, of_class], list[int]()
        order = np.argsort(-rated, kind="stable")
        order = order[rated[order] > least] if share > 0 else order[:0]
        while len(order) and len(kept) < most:
            best, order = int(order[0]), order[1:]
            kept.append(best)
            order = order[~(_overlap(boxes[n, best], boxes[n, order]) >= share)]
        chosen[n] += [(of_class, box) for box in kept]
    if output_format == "onnx":
        flat = [(n, *pair) for n, pairs in enumerate(chosen) for pair in pairs]
        rows = np.zeros((images * classes * count, 3), np.int64)
        rows[: len(flat)] = np.array(flat, np.int64).reshape(-1, 3)
        return rows, np.array([len(flat)])
    rows = np.zeros((images, classes * count, 2), np.int64)
    rated = np.zeros((images, classes * count), np.float32)
    for n, pairs in enumerate(chosen):
        for k, (of_class, box) in enumerate(pairs):
            rows[n, k], rated[n, k] = (of_class, box), scores[n, of_class, box]
    return rows, rated, np.array([len(pairs) for pairs in chosen], np.int64)


def _overlap(box: Array, others: Array) -> Array:
    """The intersection of `box` with each of `others` over their union; 0 of no area."""
    low, high = np.minimum(box[:2], box[2:]), np.maximum(box[:2], box[2:])
    lows = np.minimum(others[..., :2], others[..., 2:])
    highs = np.maximum(others[..., :2], others[..., 2:])
    common = np.prod(np.maximum(np.minimum(high, highs) - np.maximum(low, lows), 0), axis=-1)
    union = np.prod(high - low) + np.prod(highs - lows, axis=-1) - common
    return np.where(union <= 0, 0, common / np.where(union <= 0, 1, union))


REFERENCE: Mapping[str, Reference] = {
    "vision.get_valid_counts": _get_valid_counts,
    "vision.non_max_suppression": _non_max_suppression,
    "vision.all_class_non_max_suppression": _all_class_non_max_suppression,
}
