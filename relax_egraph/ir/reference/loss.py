"""Losses, and dropout."""

from collections.abc import Mapping

import numpy as np

from relax_egraph.ir.reference.array import Array, Reference, in_double


def _dropout(data: Array, *, rate: float) -> tuple[Array, Array]:
    del rate  # used in training only
    return data, np.ones_like(data)


def _cross_entropy(predictions: Array, labels: Array) -> Array:
    if predictions.shape != labels.shape:
        raise ValueError(f"labels have shape {labels.shape}, needs {predictions.shape}")
    count = np.float64(predictions.shape[0] if predictions.ndim > 1 else 1)
    return -np.sum(predictions * labels) / count


def _nll_loss(
    predictions: Array,
    targets: Array,
    weights: Array | None = None,
    *,
    reduction: str,
    ignore_index: int,
) -> Array:
    classes_last = np.moveaxis(predictions, min(1, predictions.ndim - 1), -1)
    *each, classes = classes_last.shape
    if targets.shape != tuple(each):
        raise ValueError(f"targets have shape {targets.shape}, needs {tuple(each)}")
    if weights is not None and weights.shape != (classes,):
        raise ValueError(f"weights have shape {weights.shape}, needs {(classes,)}")
    if classes == 0 and targets.size:
        raise ValueError("there are no classes to choose of")
    chosen = np.clip(targets.astype(np.int64), 0, classes - 1)
    flat = classes_last.reshape(-1, classes).astype(np.float64)
    picked = flat[np.arange(targets.size), chosen.ravel()].reshape(targets.shape)
    share = 1.0 if weights is None else weights.astype(np.float64)[chosen]
    ignored = targets == ignore_index
    weight = np.where(ignored, 0.0, share)
    loss = np.where(ignored, 0.0, -picked * share)
    if reduction == "none":
        return loss.astype(predictions.dtype)
    total = np.sum(loss)
    return (total / np.sum(weight) if reduction == "mean" else total).astype(predictions.dtype)


REFERENCE: Mapping[str, Reference] = {
    "nn.dropout": _dropout,
    "nn.cross_entropy_with_logits": in_double(_cross_entropy),
    "nn.nll_loss": _nll_loss,
}
