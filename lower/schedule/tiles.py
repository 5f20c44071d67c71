"""Blocks of matrix products: the cutting of axes, and the loops of a block with its epilogue."""

import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce

from relax_egraph.ir.dims import Dim
from relax_egraph.lower.emit.machine import scheduled_machine
from relax_egraph.lower.intrinsics.gemm import name_of
from relax_egraph.lower.intrinsics.tile_sizes import block_rows, micro_tile
from relax_egraph.lower.schedule.cut import Cut, cut, cut_sum
from relax_egraph.lower.schedule.epilogue import Epilogue, Point
from relax_egraph.lower.schedule.loops import ZERO, around
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.product import Product, bound_load
from relax_egraph.lower.schedule.strips import Strips
from relax_egraph.tir.expr import Buffer, BufferLoad, Imm, TirExpr, binary, from_dim
from relax_egraph.tir.stmt import Stmt, TensorIntrinsic, TirBlock, seq


def cut_rows(p: Product, names: Names) -> Cut:
    """The rows in blocks, which are about equally tall if the number of rows is constant."""
    return cut_evenly(p, block_rows(scheduled_machine(), p.bits), names)


def cut_evenly(p: Product, size: int, names: Names) -> Cut:
    """The rows in blocks of at most `size`, which are whole tiles if `size` is."""
    rows = p.row.extent if p.row else 1
    if isinstance(rows, int) and rows > size:
        tall = micro_tile(scheduled_machine(), p.bits).rows
        even = -(-rows // -(-rows // size))
        size = min(size, -(-even // tall) * tall)
    return cut(rows, size, "io", names)


def _cut_depth(p: Product, size: int, names: Names) -> Cut:
    """The depth in almost equal pieces."""
    extent = p.depth.extent if p.depth else 1
    if isinstance(extent, int) and extent > size:
        size = -(-extent // -(-extent // size))
    return cut_sum(extent, size, "ko", names)


@dataclass(frozen=True, slots=True)
class RightOperand:
    """The columns of a block in the right operand, by the row at each step of the depth.

    Rows are `step` apart, and the cache lines of a row `line`.  The depth is processed in pieces of
    at most `piece` steps.  If the operand is in `strips`, the next ones are prefetched.  `prepare`
    runs first, for each iteration of the axes that the product is summed over.  A row has `stored`
    elements, the last of which may be padding.
    """

    row: Callable[[TirExpr], BufferLoad]
    step: TirExpr
    line: Dim
    piece: int
    strips: Strips | None = None
    prepare: Stmt | None = None
    stored: int = 0


def target_of(p: Product, point: Point) -> BufferLoad:
    """The element of the product's buffer at `point`."""
    return bound_load(BufferLoad(p.stage.buffer, p.stage.indices), dict(point))


def block(
    epilogue: Epilogue, right: RightOperand, rows: Cut, columns: Cut, batch: Point, names: Names
) -> Stmt:
    """A block of the product over the whole depth, and its epilogue while the block is hot.

    Without an epilogue it is computed in the output, unless some padding is computed, too.
    """
    p = epilogue.product
    corner = {**batch, **p.point(rows.start, columns.start)}
    computed = _whole_tiles(p, right, rows, columns)
    if not epilogue.rest and computed == columns:
        return fill(p, right, rows, columns, batch, target_of(p, corner), p.c_row, names)
    tile = Buffer(names.fresh("tile"), (rows.size, computed.size), p.dtype, "local")
    filled = fill(p, right, rows, computed, batch, tile[0, 0], computed.size, names)
    stores = epilogue.over(tile, rows, columns, batch, names)
    return TirBlock("tile", (), seq(filled, stores), allocs=(tile,))


def _whole_tiles(p: Product, right: RightOperand, rows: Cut, columns: Cut) -> Cut:
    """The `columns` of a single block, with padding if a tile is faster than several vectors."""
    machine = scheduled_machine()
    lanes, tile = machine.lanes(p.bits), micro_tile(machine, p.bits)
    width = tile.vectors * lanes
    whole = -(-columns.size // width) * width
    is_narrower = lanes < columns.size % width
    if columns.blocks or rows.size < tile.rows or not is_narrower or whole > right.stored:
        return columns
    return replace(columns, count=Imm(whole, "int64"), size=whole)


def fill(
    p: Product,
    right: RightOperand,
    rows: Cut,
    columns: Cut,
    batch: Point,
    place: BufferLoad,
    place_row: Dim,
    names: Names,
) -> Stmt:
    """A block of the product over the whole depth, stored from `place` on.

    The rows of the block are `place_row` elements apart.
    """
    pieces = _cut_depth(p, right.piece, names)
    corner = {**batch, **p.point(rows.start, columns.start)}
    a, b = bound_load(p.a, {**corner, **p.at_depth(pieces.start)}), right.row(pieces.start)
    turns: list[TirExpr] = [axis.var for axis in (*p.over, *pieces.blocks)]
    adds = binary("min", 1, reduce(operator.add, turns)) if turns else ZERO
    ahead = right.strips.following(pieces, right.step) if right.strips else ZERO
    of_operands = (from_dim(p.a_row), from_dim(p.a_step), right.step, from_dim(right.line))
    size = (rows.count, columns.count, pieces.count)
    places = tuple((load.buffer, load.indices) for load in (a, b, place))
    call = TensorIntrinsic(
        name_of(b.buffer.dtype), places, (*of_operands, from_dim(place_row), *size, adds, ahead)
    )
    turn = around(pieces.blocks, call)
    return around(p.over, turn if right.prepare is None else seq(right.prepare, turn))
