"""Products with copies of the right operand in contiguous panels.

The rows of a wide operand are far apart, so reading a strip over a long depth is slow.  Each strip
is copied once, for all rows.
"""

from collections.abc import Callable

from relax_egraph.ir import dims
from relax_egraph.ir.dtypes import TABLE
from relax_egraph.lower.emit.machine import scheduled_machine
from relax_egraph.lower.intrinsics.tile_sizes import (
    BLOCK_COLUMNS,
    block_rows,
    panel_columns,
    piece,
    strip,
)
from relax_egraph.lower.intrinsics.transpose import name_of
from relax_egraph.lower.schedule.cut import Cut, cut
from relax_egraph.lower.schedule.epilogue import Epilogue, Point
from relax_egraph.lower.schedule.loops import ZERO, around, parallel
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.product import Product, bound_load
from relax_egraph.lower.schedule.strips import Strips
from relax_egraph.lower.schedule.tiles import RightOperand, block, cut_evenly
from relax_egraph.tir.expr import Binary, Buffer, Imm, TirExpr, from_dim
from relax_egraph.tir.stmt import For, IfThenElse, Stmt, Store, TensorIntrinsic, TirBlock, seq


def by_panels(epilogue: Epilogue, names: Names) -> Stmt:
    """The blocks of all rows, after their panel of the right operand is copied.

    For a sum of products each block copies a panel for each product.
    """
    p = epilogue.product
    batch, values = names.renamed(p.batch, "b")
    machine, extent = scheduled_machine(), p.column.extent
    bits, size = TABLE[p.b.buffer.dtype].bits, BLOCK_COLUMNS
    if isinstance(extent, int) and not p.over:
        size = panel_columns(machine, extent, bits)
    columns = cut(extent, size, "jo", names)
    depth = p.depth.extent if p.depth else 1
    width = min(columns.size, strip(machine, bits))
    panel = Buffer(
        names.fresh("panel"), (-(-columns.size // width), depth, width), p.b.buffer.dtype
    )
    pack = _pack(p, panel, columns, values, names)
    prepare = pack if p.over else None
    step, line = Imm(width, "int64"), Strips(depth, width, panel.dtype).line
    steps = piece(machine, p.bits)
    right = RightOperand(lambda k: panel[0, k, 0], step, line, steps, prepare=prepare)
    rows = cut_evenly(p, block_rows(machine, p.bits, size), names)
    blocks = around(rows.blocks, block(epilogue, right, rows, columns, values, names))
    body = blocks if p.over else seq(pack, blocks)
    return parallel((*batch, *columns.blocks), TirBlock("panel", (), body, allocs=(panel,)))


def _pack(p: Product, panel: Buffer, columns: Cut, batch: Point, names: Names) -> Stmt:
    """Copy the columns of a block to the strips of `panel`, the last of which may be narrower."""
    _, depth, width = panel.shape
    assert isinstance(width, int)
    whole = columns.count // width

    def strips(copy: Callable[[TirExpr, TirExpr], Stmt]) -> Stmt:
        """The copies of all strips, by number and columns."""
        if width == columns.size:
            return copy(ZERO, columns.count)
        s, rest = names.var("s"), columns.count % width
        full = For(s, whole, "serial", copy(s, Imm(width, "int64")))
        if dims.divides(width, p.column.extent):
            return full
        return seq(full, IfThenElse(Binary(">", rest, ZERO), copy(whole, rest)))

    def transposed(s: TirExpr, count: TirExpr) -> Stmt:
        place = {p.column.var: columns.start + s * width, **p.at_depth(ZERO)}
        corner = bound_load(p.b, {**batch, **place})
        places = ((corner.buffer, corner.indices), (panel, (s, ZERO, ZERO)))
        scalars = (from_dim(p.b_column), Imm(width, "int64"), count, from_dim(depth))
        return TensorIntrinsic(name_of(TABLE[panel.dtype].bits), places, scalars)

    if p.b_step == 1:
        return strips(transposed)
    k = names.var("k")

    def copied(s: TirExpr, count: TirExpr) -> Stmt:
        j = names.var("j")
        place = {p.column.var: columns.start + s * width + j, **p.at_depth(k)}
        copy = Store(panel, (s, k, j), bound_load(p.b, {**batch, **place}))
        return For(j, count, "vectorized", copy)

    return For(k, from_dim(depth), "serial", strips(copied))
