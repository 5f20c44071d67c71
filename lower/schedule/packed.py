"""Products with constant matrices, which are packed when the program is built.

Strips of columns are stored one after the other, each contiguous from the first row to the last, so
a product reads memory sequentially.  They are as wide as the micro-kernel of the processor.
"""

from dataclasses import dataclass

from relax_egraph.ir import dims
from relax_egraph.lower.emit.machine import scheduled_machine
from relax_egraph.lower.intrinsics.tile_sizes import BLOCK_COLUMNS, piece
from relax_egraph.lower.schedule.cut import Cut, cut
from relax_egraph.lower.schedule.epilogue import Epilogue, Point
from relax_egraph.lower.schedule.index import steps
from relax_egraph.lower.schedule.loops import ZERO, parallel
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.product import Product
from relax_egraph.lower.schedule.strips import Strips, strip_of
from relax_egraph.lower.schedule.tiles import RightOperand, block, cut_rows
from relax_egraph.tir.affine import dim_of
from relax_egraph.tir.expr import Buffer, BufferLoad, Imm, TirExpr, TirVar, binary
from relax_egraph.tir.rewrite import substitute
from relax_egraph.tir.stmt import Stmt

LINE = 16
"""The columns of a single strip are a multiple of this number, so that whole vectors are read."""


@dataclass(frozen=True, slots=True)
class Panels:
    """Matrices of `depth` rows, cut into strips of `width` columns.

    There are `count` matrices, which are transposed first if it `is_transposed`.  The last strip is
    padded with zeros, to whole vectors if it is a block by itself.
    """

    count: int
    depth: int
    columns: int
    width: int
    is_transposed: bool

    @property
    def padded(self) -> int:
        """The columns of all strips, with padding."""
        whole = LINE if self.width == BLOCK_COLUMNS else self.width
        return -(-self.columns // whole) * whole

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the packed array, with a row for each matrix if there are several."""
        size = self.depth * self.padded
        return (size,) if self.count == 1 else (self.count, size)


def panels_of(p: Product) -> Panels | None:
    """The packed form of the right operand of `p`; ``None`` if it does not consist of matrices."""
    depth, columns = p.depth.extent if p.depth else 1, p.column.extent
    extents = [depth, columns, *p.b.buffer.shape]
    if not all(isinstance(e, int) for e in extents) or not _begins_at_zero(p):
        return None
    assert isinstance(depth, int)
    assert isinstance(columns, int)
    matrix, whole = depth * columns, dims.product(p.b.buffer.shape)
    assert isinstance(whole, int)
    by_rows = p.b_column == 1 and (p.b_step == columns or p.depth is None)
    by_columns = p.b_column == depth and p.b_step == 1
    if not (by_rows or by_columns) or not matrix or whole % matrix:
        return None
    if not all(isinstance(m, int) and m % matrix == 0 for m in _batch_moves(p)):
        return None
    return Panels(whole // matrix, depth, columns, strip_of(p.b.buffer.dtype), not by_rows)


def _batch_moves(p: Product) -> tuple[dims.Dim, ...]:
    """The strides of the right operand along the axes of the batch."""
    moves = steps(p.b.buffer, p.b.indices, [a.var for a in p.batch])
    return (-1,) if moves is None else moves


def _begins_at_zero(p: Product) -> bool:
    axes = (*p.batch, p.column, *((p.depth,) if p.depth else ()))
    zeros: dict[TirVar, TirExpr] = {a.var: ZERO for a in axes}
    return all(dim_of(substitute(i, zeros)) == 0 for i in p.b.indices)


def by_packed(epilogue: Epilogue, panels: Panels, packed: Buffer, names: Names) -> Stmt:
    """The blocks of the product, each reading its strip of `packed`, which has the form `panels`.

    While a strip is read, the next one is prefetched to the second-level cache.
    """
    p = epilogue.product
    batch, values = names.renamed(p.batch, "b")
    rows = cut_rows(p, names)
    columns = cut(p.column.extent, BLOCK_COLUMNS, "jo", names)
    right = packed_right(p, panels, packed, rows, columns, values)
    body = block(epilogue, right, rows, columns, values, names)
    return parallel((*batch, *rows.blocks, *columns.blocks), body)


def packed_right(
    p: Product, panels: Panels, packed: Buffer, rows: Cut, columns: Cut, values: Point
) -> RightOperand:
    """The strips of `packed` that a block reads, for the `values` of the batch."""
    matrix: TirExpr = ZERO
    for axis, move in zip(p.batch, _batch_moves(p), strict=True):
        assert isinstance(move, int)
        matrix = matrix + values[axis.var] * (move // (panels.depth * panels.columns))
    start = columns.start * panels.depth
    step: TirExpr = Imm(min(panels.width, panels.padded), "int64")
    if columns.blocks and panels.padded % panels.width:
        step = binary("min", panels.width, panels.padded - columns.start)

    def row(k: TirExpr) -> BufferLoad:
        at = start + k * step
        return packed[at] if panels.count == 1 else packed[matrix, at]

    steps_at_once = piece(scheduled_machine(), p.bits) if rows.size > 1 else panels.depth
    strips = Strips(panels.depth, panels.width, p.b.buffer.dtype)
    return RightOperand(row, step, strips.line, steps_at_once, strips, stored=panels.padded)
