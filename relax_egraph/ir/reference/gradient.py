"""Gradients of operators: of the operand, from that of the result."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from relax_egraph.ir.ops.pooling import pool
from relax_egraph.ir.reference.array import Array, Reference, least
from relax_egraph.ir.reference.index import positions
from relax_egraph.ir.reference.pool import counted, taps


def _nll_loss_backward(
    output_grad: Array,
    predictions: Array,
    targets: Array,
    weights: Array | None = None,
    *,
    reduction: str,
    ignore_index: int,
) -> Array:
    place = min(1, predictions.ndim - 1)
    *each, classes = np.moveaxis(predictions, place, -1).shape
    if targets.shape != tuple(each):
        raise ValueError(f"targets have shape {targets.shape}, needs {tuple(each)}")
    chosen = np.clip(targets.astype(np.int64), 0, max(classes - 1, 0))
    shares = np.ones(classes) if weights is None else weights.astype(np.float64)
    weight = np.where(targets == ignore_index, 0.0, shares[chosen])
    gradient = np.broadcast_to(output_grad.astype(np.float64), targets.shape)
    if reduction == "mean":
        gradient = gradient / np.sum(weight)
    weighted = np.where(weight == 0, 0, gradient * weight)
    result = np.zeros((targets.size, classes))
    result[np.arange(targets.size), chosen.ravel()] = -weighted.ravel()
    moved = np.moveaxis(result.reshape(*each, classes), -1, place)
    return np.ascontiguousarray(moved).astype(predictions.dtype)


def _pool_backward(name: str, output_grad: Array, data: Array, **attrs: Any) -> Array:
    attributes = pool(f"R.grad.{name}_backward", 2, **attrs)
    x = np.transpose(data, attributes.data)
    gradient = np.transpose(output_grad, attributes.out).astype(np.float64)
    places = np.stack([*taps(attributes, np.arange(x.size).reshape(x.shape), -1)])
    if gradient.shape != places.shape[1:]:
        raise ValueError(f"the gradient has shape {gradient.shape}, needs {places.shape[1:]}")
    result = np.zeros(x.size)
    if name == "max_pool2d":
        values = np.stack([*taps(attributes, x, least(x.dtype))])
        is_greatest = (values == np.max(values, axis=0)) | np.isnan(values)
        first = np.argmax(is_greatest & (places >= 0), axis=0)
        places = np.take_along_axis(places, first[None], 0)
    else:
        gradient = gradient / np.maximum(counted(attributes, x), 1)
    gradient = np.broadcast_to(gradient, places.shape)
    np.add.at(result, places[places >= 0], gradient[places >= 0])
    back = np.transpose(result.reshape(x.shape), np.argsort(attributes.data))
    return np.ascontiguousarray(back).astype(data.dtype)


def _take_backward(output_grad: Array, x: Array, indices: Array, *, axis: int | None) -> Array:
    place = 0 if axis is None else axis % x.ndim
    at = positions(indices.astype(np.int64), x.shape[place])
    rest = (*x.shape[:place], *x.shape[place + 1 :])
    gradient = np.moveaxis(output_grad, range(place, place + at.ndim), range(at.ndim))
    result = np.zeros((x.shape[place], *rest))
    if x.shape[place]:  # else there is nothing to take
        np.add.at(result, at, gradient.astype(np.float64))
    return np.ascontiguousarray(np.moveaxis(result, 0, place)).astype(x.dtype)


REFERENCE: Mapping[str, Reference] = {
    "grad.nll_loss_backward": _nll_loss_backward,
    "grad.max_pool2d_backward": partial(_pool_backward, "max_pool2d"),
    "grad.avg_pool2d_backward": partial(_pool_backward, "avg_pool2d"),
    "grad.take_backward": _take_backward,
}
