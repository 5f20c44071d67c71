"""Convolutions and their transposes."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from relax_egraph.ir.ops.convolution import Convolution, convolution
from relax_egraph.ir.reference.array import Array, Reference


def _conv(rank: int, data: Array, weight: Array, **attrs: Any) -> Array:
    attributes = convolution("R.nn.conv", rank, **attrs)
    x, w, dtype = _operands(attributes, data, weight)
    move = attributes.windows
    padded = np.pad(x, [(0, 0), (0, 0), *zip(move.before, move.after, strict=True)])
    batch, out_channels, *extents = _result(attributes, x, w)
    total = np.zeros(
        (batch, attributes.groups, out_channels // attributes.groups, *extents), w.dtype
    )
    for tap in np.ndindex(w.shape[2:]):
        seen = padded[(..., *_taken(attributes, tap, extents))]
        total += np.einsum(
            "goi,ngi...->ngo...", _by_group(attributes, w, tap), _grouped(attributes, seen)
        )
    return _laid_out(attributes, total, dtype)


def _conv_transpose(rank: int, data: Array, weight: Array, **attrs: Any) -> Array:
    attributes = convolution("R.nn.conv_transpose", rank, **attrs)
    x, w, dtype = _operands(attributes, data, weight)
    move = attributes.windows
    batch, out_channels, *extents = _result(attributes, x, w)
    uncut = [e + b + a for e, b, a in zip(extents, move.before, move.after, strict=True)]
    total = np.zeros((batch, attributes.groups, out_channels // attributes.groups, *uncut), w.dtype)
    for tap in np.ndindex(w.shape[2:]) if x.size else ():
        places = _taken(attributes, tap, x.shape[2:])
        total[(..., *places)] += np.einsum(
            "gio,ngi...->ngo...", _by_group(attributes, w, tap), _grouped(attributes, x)
        )
    kept = [slice(b, b + e) for b, e in zip(move.before, extents, strict=True)]
    return _laid_out(attributes, total[(..., *kept)], dtype)


def _operands(attributes: Convolution, data: Array, weight: Array) -> tuple[Array, Array, Any]:
    """Data and weight in canonical order and in the dtype of the sums; the dtype of the result."""
    dtype = np.dtype(attributes.out_dtype or data.dtype)
    wide = np.float64 if dtype.kind == "f" else dtype
    x = np.transpose(data.astype(dtype), attributes.data).astype(wide)
    return x, np.transpose(weight.astype(dtype), attributes.kernel).astype(wide), dtype


def _result(attributes: Convolution, x: Array, w: Array) -> list[int]:
    """The result's shape in canonical order; checks that the operands fit together."""
    o, i = w.shape[:2]
    needed, split, out_channels = map(int, attributes.channels(x.shape[1], o, i))
    if x.shape[1] != needed or split % attributes.groups:
        raise ValueError(f"the channels do not fit together in {attributes.groups} groups")
    extents = [
        int(attributes.extent(k, e, s))
        for k, (e, s) in enumerate(zip(x.shape[2:], w.shape[2:], strict=True))
    ]
    if (
        0 in w.shape[2:]
        or min(extents) < 0
        or not (attributes.transposed or _fits(attributes, x, w))
    ):
        raise ValueError("the window does not fit into the padded data")
    return [x.shape[0], out_channels, *extents]


def _fits(attributes: Convolution, x: Array, w: Array) -> bool:
    pairs = enumerate(zip(x.shape[2:], w.shape[2:], strict=True))
    return all(
        attributes.windows.reach(k, s) <= attributes.windows.padded(k, max(e, 1))
        for k, (e, s) in pairs
    )


def _taken(attributes: Convolution, tap: tuple[int, ...], counts: Any) -> list[slice]:
    """The places of one tap of the window, at each of `counts` positions along each axis."""
    starts = [t * d for t, d in zip(tap, attributes.windows.dilation, strict=True)]
    steps = attributes.windows.strides
    return [
        slice(start, start + step * count, step) if count else slice(0, 0)
        for start, step, count in zip(starts, steps, counts, strict=True)
    ]


def _grouped(attributes: Convolution, x: Array) -> Array:
    batch, channels, *extents = x.shape
    return x.reshape(batch, attributes.groups, channels // attributes.groups, *extents)


def _by_group(attributes: Convolution, w: Array, tap: tuple[int, ...]) -> Array:
    """The weights of one tap, ``(group, O or I of the group, the other)``."""
    matrix = np.asarray(w[(..., *tap)].T if attributes.transposed else w[(..., *tap)])
    rows, columns = matrix.shape
    return matrix.reshape(attributes.groups, rows // attributes.groups, columns)


def _laid_out(attributes: Convolution, total: Array, dtype: Any) -> Array:
    batch, groups, channels, *extents = total.shape
    result = total.reshape(batch, groups * channels, *extents).astype(dtype)
    return np.transpose(result, np.argsort(attributes.out))


REFERENCE: Mapping[str, Reference] = {
    **{f"nn.conv{rank}d": partial(_conv, rank) for rank in (1, 2, 3)},
    **{f"nn.conv{rank}d_transpose": partial(_conv_transpose, rank) for rank in (1, 2, 3)},
}
