"""Blocks of matrix products: the cutting of axes, and the loops of a block with its epilogue."""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

from relax_egraph.lower.intrinsics.gemm import name_of
from relax_egraph.lower.schedule.cut import Cut, cut, cut_sum
from relax_egraph.lower.schedule.epilogue import Epilogue, Point
from relax_egraph.lower.schedule.loops import ZERO, around
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.product import Product, bound_load
from relax_egraph.tir.expr import Binary, Buffer, BufferLoad, Select, TirExpr, binary, from_dim
from relax_egraph.tir.stmt import Stmt, TensorIntrinsic, TirBlock, seq

BLOCK_ROWS = 96
"""The rows of a block: whole tiles, which for a depth of 1024 take 384 KiB of the second cache."""

BLOCK_COLUMNS = 64
"""The columns of a block: a multiple of the width of the micro-kernel."""


def cut_rows(p: Product, names: Names) -> Cut:
    """The rows in blocks, which are about equally tall if the number of rows is constant."""
    rows = p.row.extent if p.row else 1
    if isinstance(rows, int) and rows > BLOCK_ROWS:
        even = -(-rows // -(-rows // BLOCK_ROWS))
        return cut(rows, min(BLOCK_ROWS, -(-even // 6) * 6), "io", names)
    return cut(rows, BLOCK_ROWS, "io", names)


def _cut_depth(p: Product, size: int, names: Names) -> Cut:
    """The depth in almost equal pieces."""
    extent = p.depth.extent if p.depth else 1
    if isinstance(extent, int) and extent > size:
        size = -(-extent // -(-extent // size))
    return cut_sum(extent, size, "ko", names)


@dataclass(frozen=True, slots=True)
class RightOperand:
    """The columns of a block in the right operand, by the row at each step of the depth.

    Rows are `step` apart, and cache lines of a row `strip`.  The depth is processed in pieces of at
    most `piece` steps, whose rows stay in the second-level cache.  The next block begins
    `following` elements after this one, if it is prefetched.  `prepare` runs first, for each
    iteration of the axes that the product is summed over.
    """

    row: Callable[[TirExpr], BufferLoad]
    step: TirExpr
    strip: TirExpr
    piece: int
    following: TirExpr | None = None
    prepare: Stmt | None = None

    def ahead(self, pieces: Cut) -> TirExpr:
        """The distance of what is read after a piece, in elements; 0 if it is not prefetched."""
        if self.following is None:
            return ZERO
        if not pieces.blocks:
            return self.following
        (piece,) = pieces.blocks
        is_last = Binary("==", piece.var + 1, from_dim(piece.extent))
        to_next_block = self.following - pieces.start * self.step
        return Select(is_last, to_next_block, pieces.count * self.step)


def target_of(p: Product, point: Point) -> BufferLoad:
    """The element of the product's buffer at `point`."""
    return bound_load(BufferLoad(p.stage.buffer, p.stage.indices), dict(point))


def block(
    epilogue: Epilogue, right: RightOperand, rows: Cut, columns: Cut, batch: Point, names: Names
) -> Stmt:
    """A block of the product over the whole depth, and its epilogue while the block is hot.

    Without an epilogue it is computed in the output.
    """
    p = epilogue.product
    pieces = _cut_depth(p, right.piece, names)
    corner = {**batch, **p.point(rows.start, columns.start)}
    a, b = bound_load(p.a, {**corner, **p.at_depth(pieces.start)}), right.row(pieces.start)
    turns: list[TirExpr] = [axis.var for axis in (*p.over, *pieces.blocks)]
    adds = binary("min", 1, reduce(operator.add, turns)) if turns else ZERO
    tile = Buffer(names.fresh("tile"), (rows.size, columns.size), "float32", "local")
    c, c_row = (tile[0, 0], columns.size) if epilogue.rest else (target_of(p, corner), p.c_row)
    strides = (from_dim(p.a_row), from_dim(p.a_step), right.step, right.strip, from_dim(c_row))
    size = (rows.count, columns.count, pieces.count)
    places = tuple((load.buffer, load.indices) for load in (a, b, c))
    call = TensorIntrinsic(
        name_of(b.buffer.dtype), places, (*strides, *size, adds, right.ahead(pieces))
    )
    turn = around(pieces.blocks, call)
    fill = around(p.over, turn if right.prepare is None else seq(right.prepare, turn))
    if not epilogue.rest:
        return fill
    stores = epilogue.over(tile, rows, columns, batch, names)
    return TirBlock("tile", (), seq(fill, stores), allocs=(tile,))
