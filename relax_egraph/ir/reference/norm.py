"""Normalisations: softmax, and those by mean and variance."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from relax_egraph.ir.reference.array import Array, Reference, in_double


def _softmax(x: Array, *, axis: int) -> Array:
    powers = np.exp(x - np.max(x, axis=axis, keepdims=True, initial=-np.inf))
    return powers / np.sum(powers, axis=axis, keepdims=True)


def _log_softmax(x: Array, *, axis: int) -> Array:
    below = x - np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    return below - np.log(np.sum(np.exp(below), axis=axis, keepdims=True))


def _layer_norm(
    x: Array,
    gamma: Array,
    beta: Array,
    *,
    axes: Sequence[int],
    epsilon: float,
    center: bool,
    scale: bool,
) -> Array:
    gamma, beta = (_along(x, p, axes) for p in (gamma, beta))
    return _affine(_standard(x, axes, epsilon), gamma, beta, center, scale)


def _rms_norm(x: Array, weight: Array, *, axes: Sequence[int], epsilon: float) -> Array:
    return x / np.sqrt(_mean(x**2, axes) + epsilon) * _along(x, weight, axes)


def _group_norm(
    x: Array,
    gamma: Array,
    beta: Array,
    *,
    num_groups: int,
    channel_axis: int,
    axes: Sequence[int],
    epsilon: float,
    center: bool,
    scale: bool,
) -> Array:
    channel = channel_axis % x.ndim
    channels = x.shape[channel]
    if channels % num_groups:
        raise ValueError(f"{channels} channels are not divided by num_groups {num_groups}")
    gamma, beta = (_along(x, p, (channel,)) for p in (gamma, beta))
    size = channels // num_groups
    groups = x.reshape(*x.shape[:channel], num_groups, size, *x.shape[channel + 1 :])
    places = (a % x.ndim for a in axes)
    within = (channel + 1, *(a if a < channel else a + 1 for a in places))
    return _affine(_standard(groups, within, epsilon).reshape(x.shape), gamma, beta, center, scale)


def _instance_norm(
    x: Array,
    gamma: Array,
    beta: Array,
    *,
    channel_axis: int,
    axes: Sequence[int],
    epsilon: float,
    center: bool,
    scale: bool,
) -> Array:
    gamma, beta = (_along(x, p, (channel_axis,)) for p in (gamma, beta))
    return _affine(_standard(x, axes, epsilon), gamma, beta, center, scale)


def _batch_norm(
    data: Array,
    gamma: Array,
    beta: Array,
    moving_mean: Array,
    moving_var: Array,
    *,
    axis: int,
    epsilon: float,
    center: bool,
    scale: bool,
    momentum: float,
    training: bool,
) -> tuple[Array, ...]:
    x = data.astype(np.float64)
    parameters = (gamma, beta, moving_mean, moving_var)
    gamma, beta, mean, var = (_along(x, p.astype(np.float64), (axis,)) for p in parameters)
    moving = (mean, var)
    if training:
        others = tuple(k for k in range(x.ndim) if k != axis % x.ndim)
        mean = _mean(x, others)
        var = _mean((x - mean) ** 2, others)
        moving = (
            (1 - momentum) * moving[0] + momentum * mean,
            (1 - momentum) * moving[1] + momentum * var,
        )
    out = _affine((x - mean) / np.sqrt(var + epsilon), gamma, beta, center, scale)
    return tuple(o.astype(data.dtype) for o in (out, *(m.ravel() for m in moving)))


def _mean(x: Array, axes: Sequence[int]) -> Array:
    """The mean over `axes`, which stay with extent 1; NaN over nothing."""
    count = np.float64(math.prod(x.shape[a] for a in axes))
    return np.sum(x, axis=tuple(axes), keepdims=True) / count


def _standard(x: Array, axes: Sequence[int], epsilon: float) -> Array:
    """`x` with mean 0 and, up to `epsilon`, variance 1 over `axes`."""
    deviation = x - _mean(x, axes)
    return deviation / np.sqrt(_mean(deviation**2, axes) + epsilon)


def _affine(x: Array, gamma: Array, beta: Array, center: bool, scale: bool) -> Array:
    scaled = x * gamma if scale else x
    return scaled + beta if center else scaled


def _along(x: Array, parameter: Array, axes: Sequence[int]) -> Array:
    """`parameter`, which has the extents of `axes` of `x`, so that it broadcasts to `x`."""
    places = [a % x.ndim for a in axes]
    wanted = tuple(x.shape[p] for p in places)
    if parameter.shape != wanted:
        raise ValueError(f"a parameter has shape {parameter.shape}, needs {wanted}")
    ordered = parameter.transpose([places.index(p) for p in sorted(places)])
    return ordered.reshape([d if k in places else 1 for k, d in enumerate(x.shape)])


REFERENCE: Mapping[str, Reference] = {
    "nn.softmax": in_double(_softmax),
    "nn.log_softmax": in_double(_log_softmax),
    "nn.layer_norm": in_double(_layer_norm),
    "nn.rms_norm": in_double(_rms_norm),
    "nn.group_norm": in_double(_group_norm),
    "nn.instance_norm": in_double(_instance_norm),
    "nn.batch_norm": _batch_norm,
}
