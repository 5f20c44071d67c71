"""Operators that repeat and reverse elements by index arithmetic."""

from collections.abc import Mapping

from relax_egraph.errors import NotLowerable
from relax_egraph.ir import dims
from relax_egraph.lower.legalize.elementwise import Legalize
from relax_egraph.lower.legalize.manipulate import flatten
from relax_egraph.tir import te
from relax_egraph.tir.expr import Imm, TirExpr, TirVar, from_dim


def tile(data: te.Tensor, *, repeats: tuple[int, ...]) -> te.Tensor:
    """`data`, repeated `repeats` times along each axis."""
    rank = max(len(data.shape), len(repeats))
    times = (1,) * (rank - len(repeats)) + repeats
    shape = (1,) * (rank - len(data.shape)) + data.shape

    def value(*i: TirVar) -> TirExpr:
        at: list[TirExpr] = []
        for axis, extent, count in zip(i, shape, times, strict=True):
            if extent == 1:
                at.append(Imm(0, "int64"))
            else:
                at.append(axis if count == 1 or extent == 0 else axis % from_dim(extent))
        return data[tuple(at[rank - len(data.shape) :])]

    return te.compute(tuple(map(dims.mul, shape, times)), value, "tile")


def repeat(data: te.Tensor, *, repeats: int, axis: int | None) -> te.Tensor:
    """Each slice of `data` along `axis`, repeated; without an axis, each element, in one row."""
    source = flatten(data) if axis is None else data
    place = 0 if axis is None else axis % len(data.shape)
    shape = [dims.mul(d, repeats) if k == place else d for k, d in enumerate(source.shape)]

    def value(*i: TirVar) -> TirExpr:
        return source[(*i[:place], i[place] // max(repeats, 1), *i[place + 1 :])]

    return te.compute(shape, value, "repeat")


def flip(data: te.Tensor, *, axis: int) -> te.Tensor:
    """`data`, reversed along `axis`."""
    place = axis % len(data.shape)
    last = from_dim(data.shape[place]) - 1

    def value(*i: TirVar) -> TirExpr:
        return data[(*i[:place], last - i[place], *i[place + 1 :])]

    return te.compute(data.shape, value, "flip")


def reverse_sequence(
    data: te.Tensor, seq_lengths: te.Tensor, *, seq_axis: int, batch_axis: int
) -> te.Tensor:
    """`data` with the first slices along `seq_axis` reversed, as many as the length of the batch.

    A length is clamped to the extent, so that every index is inside.
    """
    rank = len(data.shape)
    along, batch = seq_axis % rank, batch_axis % rank
    if not dims.equal(seq_lengths.shape[0], data.shape[batch]):
        raise NotLowerable("whether there is a length for each sequence is known only at run time")
    extent = from_dim(data.shape[along])

    def value(*i: TirVar) -> TirExpr:
        length = te.cast(seq_lengths[i[batch]], "int64")
        length = te.maximum(te.minimum(length, extent), 0)
        source = te.select(i[along] < length, length - 1 - i[along], i[along])
        return data[(*i[:along], source, *i[along + 1 :])]

    return te.compute(data.shape, value, "reverse_sequence")


LEGALIZE: Mapping[str, Legalize] = {
    "tile": tile,
    "repeat": repeat,
    "flip": flip,
    "reverse_sequence": reverse_sequence,
}
