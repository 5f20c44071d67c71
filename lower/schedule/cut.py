"""Axes cut into blocks of one size, with a shorter last block."""

from dataclasses import dataclass, replace

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.stages import Axis
from relax_egraph.tir.expr import Imm, TirExpr, binary, from_dim


@dataclass(frozen=True, slots=True)
class Cut:
    """An axis in blocks: the loop over them, the start of a block, and its length.

    `size` is the maximal length.
    """

    blocks: tuple[Axis, ...]
    start: TirExpr
    count: TirExpr
    size: int


def cut(extent: Dim, size: int, name: str, names: Names) -> Cut:
    """An axis of `extent` in blocks of `size`; a single block needs no loop."""
    if isinstance(extent, int) and extent <= size:
        return Cut((), Imm(0, "int64"), Imm(extent, "int64"), extent)
    block = Axis(names.var(name), dims.floordiv(dims.add(extent, size - 1), size))
    start = block.var * size
    if dims.divides(size, extent):
        return Cut((block,), start, Imm(size, "int64"), size)
    return Cut((block,), start, binary("min", size, from_dim(extent) - start), size)


def cut_sum(extent: Dim, size: int, name: str, names: Names) -> Cut:
    """A summed axis in at least one block, so that an empty sum is 0 and is not skipped."""
    blocks = cut(dims.maximum(1, extent), size, name, names)
    if isinstance(extent, int) and extent > 0:
        return blocks
    return replace(blocks, count=binary("min", size, from_dim(extent) - blocks.start))
