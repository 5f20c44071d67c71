"""Scaled dot-product attention."""

import math
from collections.abc import Mapping

import numpy as np

from relax_egraph.ir.reference.array import Array, Reference, in_double


def _attention(
    query: Array,
    key: Array,
    value: Array,
    bias: Array | None = None,
    *,
    scale: float | None,
    causal_mask: str | None,
    window_size: int | None,
) -> Array:
    batch, queries, heads, size = query.shape
    keys = key.shape[1]
    if key.shape != (batch, keys, key.shape[2], size):
        raise ValueError("key does not fit query")
    if value.shape[:2] != (batch, keys):
        raise ValueError("value does not fit query and key")
    wanted = (batch, heads, queries, keys)
    if bias is not None and not _stretches(bias.shape, wanted):
        raise ValueError(f"bias does not broadcast to {wanted}")
    q, k, v = query.swapaxes(1, 2), _by_head(key, heads), _by_head(value, heads)
    scores = q @ k.swapaxes(2, 3)
    scores = scores / np.sqrt(np.float64(size)) if scale is None else scores * scale
    if bias is not None:
        scores = scores + bias
    if causal_mask is not None:
        seen = _seen(queries, keys, causal_mask, window_size)
        scores = np.where(seen, scores, -np.inf)
    powers = np.exp(scores - np.max(scores, axis=-1, keepdims=True, initial=-np.inf))
    shares = powers / np.sum(powers, axis=-1, keepdims=True)
    return (shares @ v).swapaxes(1, 2)


def _stretches(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Whether `shape` broadcasts to `wanted`, and the last extents are equal."""
    fits = all(d in (1, w) for d, w in zip(shape, wanted, strict=True))
    return fits and shape[-1] == wanted[-1]


def _by_head(x: Array, heads: int) -> Array:
    """`x` as (batch, head, sequence, element), each head repeated to make `heads` of them."""
    have = x.shape[2]
    if heads != have and (have == 0 or heads % have):
        raise ValueError(f"{heads} heads of query are no multiple of {have}")
    return np.repeat(x, heads // max(have, 1), axis=2).swapaxes(1, 2)


def _seen(queries: int, keys: int, causal_mask: str, window_size: int | None) -> Array:
    """The mask of the keys that each query may attend to."""
    offset = abs(queries - keys) if causal_mask == "BottomRight" else 0
    behind = np.arange(queries)[:, None] + offset - np.arange(keys)
    return (behind >= 0) & (behind < (math.inf if window_size is None else window_size))


REFERENCE: Mapping[str, Reference] = {
    "nn.attention": in_double(_attention),
    "nn.attention_bias": in_double(_attention),
}
