"""Operators that join, cut, repeat and reverse tensors."""

from collections.abc import Mapping

import numpy as np

from relax_egraph.ir.reference.array import Array, Reference

Arrays = tuple[Array, ...]


def _concat(tensors: Arrays, *, axis: int | None) -> Array:
    return np.concatenate(tensors, axis)


def _stack(tensors: Arrays, *, axis: int) -> Array:
    return np.stack(tensors, axis)


def _split(x: Array, *, indices_or_sections: int | tuple[int, ...], axis: int) -> Arrays:
    if isinstance(indices_or_sections, int):
        each = -(-x.shape[axis] // indices_or_sections)
        indices_or_sections = tuple(each * k for k in range(1, indices_or_sections))
    return tuple(np.split(x, indices_or_sections, axis))


def _tile(data: Array, *, repeats: tuple[int, ...]) -> Array:
    return np.tile(data, repeats)


def _repeat(data: Array, *, repeats: int, axis: int | None) -> Array:
    return np.repeat(data, repeats, axis)


def _flip(data: Array, *, axis: int) -> Array:
    return np.flip(data, axis)


def _meshgrid(tensors: Arrays, *, indexing: str) -> Arrays:
    return tuple(np.meshgrid(*tensors, indexing="xy" if indexing == "xy" else "ij"))


def _reverse_sequence(data: Array, seq_lengths: Array, *, seq_axis: int, batch_axis: int) -> Array:
    sequences = np.moveaxis(data, (batch_axis, seq_axis), (0, 1))
    batch, extent = sequences.shape[:2]
    if seq_lengths.shape != (batch,):
        raise ValueError(f"{len(seq_lengths)} lengths for {batch} sequences")
    i = np.arange(extent)
    lengths = np.clip(seq_lengths.astype(np.int64), 0, extent)[:, None]
    source = np.where(i < lengths, lengths - 1 - i, i)
    reversed_ = sequences[np.arange(batch)[:, None], source]
    return np.moveaxis(reversed_, (0, 1), (batch_axis, seq_axis))


REFERENCE: Mapping[str, Reference] = {
    "concat": _concat,
    "stack": _stack,
    "split": _split,
    "tile": _tile,
    "repeat": _repeat,
    "flip": _flip,
    "meshgrid": _meshgrid,
    "reverse_sequence": _reverse_sequence,
}
