"""Right operands in strips: columns that are stored together, one strip after the other.

A strip is contiguous from the first row to the last, so a product reads memory sequentially.
"""

from dataclasses import dataclass

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.dtypes import TABLE
from relax_egraph.lower.emit.machine import packing_machine
from relax_egraph.lower.intrinsics.row import strip_columns
from relax_egraph.lower.intrinsics.tile_sizes import BLOCK_COLUMNS, strip
from relax_egraph.lower.schedule.cut import Cut
from relax_egraph.tir.expr import Binary, Select, TirExpr, from_dim


def strip_of(dtype: str) -> int:
    """The columns of a strip of an operand of `dtype` that may be prepared."""
    return strip(packing_machine(), TABLE[dtype].bits)


@dataclass(frozen=True, slots=True)
class Strips:
    """Strips of `width` columns and `depth` rows, of `dtype`.

    Blocks of columns consist of some strips, or are one, which may then be narrower.
    """

    depth: Dim
    width: int
    dtype: str

    @property
    def line(self) -> Dim:
        """The distance of the adjacent cache lines of a row."""
        columns = strip_columns(self.dtype)
        return columns if self.width != columns else dims.mul(self.depth, columns)

    def following(self, pieces: Cut, step: TirExpr) -> TirExpr:
        """The distance of what is read after a piece of a block, in elements.

        It is the same piece of the next block, unless a block is one strip; rows are `step` apart.
        """
        if self.width != strip_columns(self.dtype):
            return pieces.count * step
        block = from_dim(dims.mul(self.depth, BLOCK_COLUMNS))
        if not pieces.blocks:
            return block
        (piece,) = pieces.blocks
        is_last = Binary("==", piece.var + 1, from_dim(piece.extent))
        return Select(is_last, block - pieces.start * step, pieces.count * step)
