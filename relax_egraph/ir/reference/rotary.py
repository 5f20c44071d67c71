"""Rotary position embedding."""

from collections.abc import Mapping

import numpy as np

from relax_egraph.ir.reference.array import Array, Reference, in_double


def _rotary_embedding(x: Array, cos: Array, sin: Array, *, interleaved: bool) -> Array:
    if cos.shape != sin.shape:
        raise ValueError(f"cos has shape {cos.shape} and sin {sin.shape}, need one shape")
    if not x.ndim or not cos.ndim:
        raise ValueError("a tensor of rank 0 has no pairs")
    size = x.shape[-1]
    if cos.shape[-1] == size and size % 2:
        raise ValueError(f"{size} elements are no pairs")
    if cos.shape[-1] != size:
        cos, sin = (_each(angle, interleaved) for angle in (cos, sin))
    count = cos.shape[-1]
    if count > size:
        raise ValueError(f"{size} elements have no {count // 2} pairs")
    turned, rest = x[..., :count], x[..., count:]
    cos, sin = (np.broadcast_to(angle, turned.shape) for angle in (cos, sin))
    return np.concatenate([turned * cos + _quarter(turned, interleaved) * sin, rest], axis=-1)


def _each(angle: Array, interleaved: bool) -> Array:
    """A value for each element, of one for each pair."""
    return np.repeat(angle, 2, -1) if interleaved else np.concatenate([angle, angle], -1)


def _quarter(x: Array, interleaved: bool) -> Array:
    """Each pair ``(a, b)`` as ``(-b, a)``."""
    if interleaved:
        return np.stack([-x[..., 1::2], x[..., ::2]], axis=-1).reshape(x.shape)
    a, b = np.split(x, 2, axis=-1)
    return np.concatenate([-b, a], axis=-1)


REFERENCE: Mapping[str, Reference] = {"nn.rotary_embedding": in_double(_rotary_embedding)}
