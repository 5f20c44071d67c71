"""Axes in blocks of one size, the last of which is shorter."""

from dataclasses import dataclass, replace

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.stages import Axis
from relax_egraph.tir.expr import Imm, TirExpr, binary, from_dim


@dataclass(frozen=True, slots=True)
class Cut:
    """An axis in blocks: the loop over them, where one begins, and how much of it there is.

    `size` is the most that there is of one.
    """

    blocks: tuple[Axis, ...]
    start: TirExpr
    count: TirExpr
    size: int


def cut(extent: Dim, size: int, name: str, names: Names) -> Cut:
    """An axis of `extent` in blocks of `size`, the last one shorter; no loop if one is enough."""
    if isinstance(extent, int) and extent <= size:
        return Cut((), Imm(0, "int64"), Imm(extent, "int64"), extent)
    block = Axis(names.var(name), dims.floordiv(dims.add(extent, size - 1), size))
    start = block.var * size
    if dims.divides(size, extent):
        return Cut((block,), start, Imm(size, "int64"), size)
    return Cut((block,), start, binary("min", size, from_dim(extent) - start), size)


def cut_sum(extent: Dim, size: int, name: str, names: Names) -> Cut:
    """An axis that is summed over, in at least one block: a sum of nothing is 0, not left out."""
    blocks = cut(dims.maximum(1, extent), size, name, names)
    if isinstance(extent, int) and extent > 0:
        return blocks
    return replace(blocks, count=binary("min", size, from_dim(extent) - blocks.start))
