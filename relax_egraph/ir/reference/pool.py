"""Pools: the greatest element or the mean of each window."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from relax_egraph.ir.ops.pooling import Pool, adaptive_pool, pool
from relax_egraph.ir.reference.array import Array, Reference, least


def _max_pool(rank: int, data: Array, **attrs: Any) -> Array:
    attributes = pool("R.nn.max_pool", rank, **attrs)
    x = np.transpose(data, attributes.data)
    bottom = least(x.dtype)
    total = np.full((*x.shape[:2], *_extents(attributes, x.shape[2:])), bottom, x.dtype)
    for tap in taps(attributes, x, bottom):
        total = np.maximum(total, tap)
    return np.transpose(total, np.argsort(attributes.out))


def _avg_pool(rank: int, data: Array, **attrs: Any) -> Array:
    attributes = pool("R.nn.avg_pool", rank, **attrs)
    x = np.transpose(data, attributes.data)
    total = sum(taps(attributes, x.astype(np.float64), 0))
    mean = (total / np.maximum(counted(attributes, x), 1)).astype(x.dtype)
    return np.transpose(mean, np.argsort(attributes.out))


def counted(attributes: Pool, x: Array) -> Array:
    """How many elements the mean of each window counts."""
    ones = np.ones(x.shape)
    if attributes.count_include_pad:
        ones = np.pad(ones, _margins(attributes), constant_values=1)
    return np.asarray(sum(taps(attributes, ones, 0, padded=attributes.count_include_pad)))


def _extents(attributes: Pool, spatial: Sequence[int]) -> list[int]:
    extents = [int(attributes.extent(k, e)) for k, e in enumerate(spatial)]
    lengths = [
        int(attributes.windows.reach(k, s)) - attributes.padding(k)
        for k, s in enumerate(attributes.sizes)
    ]
    if any(length > max(e, 1) for length, e in zip(lengths, spatial, strict=True)):
        raise ValueError("the window does not fit into the padded data")
    return extents


def _margins(attributes: Pool) -> list[tuple[int, int]]:
    move = attributes.windows
    return [(0, 0), (0, 0), *zip(move.before, move.after, strict=True)]


def taps(attributes: Pool, x: Array, fill: Any, padded: bool = False) -> Iterator[Array]:
    """Each tap of the window at all positions, with `fill` around `x`, or around its padding."""
    move = attributes.windows
    whole = x if padded else np.pad(x, _margins(attributes), constant_values=fill)
    original = [e - b - a for e, b, a in zip(whole.shape[2:], move.before, move.after, strict=True)]
    counts = _extents(attributes, original)
    ends = [
        max((count - 1) * step + int(move.reach(k, attributes.sizes[k])) - extent, 0)
        for k, (count, step, extent) in enumerate(
            zip(counts, move.strides, whole.shape[2:], strict=True)
        )
    ]
    whole = np.pad(whole, [(0, 0), (0, 0), *((0, end) for end in ends)], constant_values=fill)
    for tap in np.ndindex(attributes.sizes):
        starts = [t * d for t, d in zip(tap, move.dilation, strict=True)]
        places = zip(starts, move.strides, counts, strict=True)
        yield whole[(..., *(slice(s, s + step * count, step) for s, step, count in places))]


def _adaptive_avg_pool(rank: int, data: Array, **attrs: Any) -> Array:
    attributes = adaptive_pool("R.nn.adaptive_avg_pool", rank, **attrs)
    x = np.transpose(data, attributes.data).astype(np.float64)
    spatial = x.shape[2:]
    sizes = spatial if attributes.sizes is None else attributes.sizes
    result = np.empty((*x.shape[:2], *sizes))
    for at in np.ndindex(*sizes):
        box = [
            slice(i * e // s, -(-(i + 1) * e // s))
            for i, e, s in zip(at, spatial, sizes, strict=True)
        ]
        seen = x[(..., *box)]
        axes = tuple(range(2, x.ndim))
        count = np.float64(np.prod(seen.shape[2:]))
        result[(..., *at)] = np.sum(seen, axis=axes) / count
    return np.transpose(result.astype(data.dtype), np.argsort(attributes.out))


REFERENCE: Mapping[str, Reference] = {
    **{f"nn.max_pool{rank}d": partial(_max_pool, rank) for rank in (1, 2, 3)},
    **{f"nn.avg_pool{rank}d": partial(_avg_pool, rank) for rank in (1, 2, 3)},
    **{f"nn.adaptive_avg_pool{rank}d": partial(_adaptive_avg_pool, rank) for rank in (1, 2, 3)},
}
