"""Products with copies of the right operand in contiguous panels.

The rows of a wide operand are far apart, so reading a strip over a long depth is slow.  Each strip
is copied once, for all rows.
"""

from relax_egraph.ir import dims
from relax_egraph.ir.dtypes import TABLE
from relax_egraph.lower.intrinsics.row import strip_columns
from relax_egraph.lower.intrinsics.transpose import name_of
from relax_egraph.lower.machine import scheduled_machine
from relax_egraph.lower.schedule.cut import Cut, cut
from relax_egraph.lower.schedule.epilogue import Epilogue, Point
from relax_egraph.lower.schedule.loops import ZERO, around, parallel
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.product import Product, bound_load
from relax_egraph.lower.schedule.strips import Strips
from relax_egraph.lower.schedule.tiles import RightOperand, block, cut_rows
from relax_egraph.lower.tile_sizes import BLOCK_COLUMNS, piece, strip
from relax_egraph.tir.expr import Buffer, Imm, as_expr, binary, from_dim
from relax_egraph.tir.stmt import For, Stmt, Store, TensorIntrinsic, TirBlock, seq


def by_panels(epilogue: Epilogue, names: Names) -> Stmt:
    """The blocks of all rows, after their panel of the right operand is copied.

    For a sum of products each block copies a panel for each product.
    """
    p = epilogue.product
    batch, values = names.renamed(p.batch, "b")
    columns = cut(p.column.extent, BLOCK_COLUMNS, "jo", names)
    depth = p.depth.extent if p.depth else 1
    wide = strip(scheduled_machine(), TABLE[p.b.buffer.dtype].bits)
    width = min(wide, max(columns.size, strip_columns(p.b.buffer.dtype)))
    panel = Buffer(
        names.fresh("panel"), (-(-columns.size // width), depth, width), p.b.buffer.dtype
    )
    pack = _pack(p, panel, columns, values, names)
    prepare = pack if p.over else None
    step, line = Imm(width, "int64"), Strips(depth, width, panel.dtype).line
    steps = piece(scheduled_machine())
    right = RightOperand(lambda k: panel[0, k, 0], step, line, steps, prepare=prepare)
    rows = cut_rows(p, names)
    blocks = around(rows.blocks, block(epilogue, right, rows, columns, values, names))
    body = blocks if p.over else seq(pack, blocks)
    return parallel((*batch, *columns.blocks), TirBlock("panel", (), body, allocs=(panel,)))


def _pack(p: Product, panel: Buffer, columns: Cut, batch: Point, names: Names) -> Stmt:
    """Copy the columns of a block to the strips of `panel`."""
    depth, s = from_dim(p.depth.extent if p.depth else 1), names.var("s")
    width = panel.shape[-1]
    assert isinstance(width, int)
    start = columns.start + s * width
    if len(columns.blocks) == 0 and columns.size <= width:
        strips, count = as_expr(1), columns.count
    elif dims.divides(width, p.column.extent):
        strips, count = columns.count // width, as_expr(width)
    else:
        strips = (columns.count + (width - 1)) // width
        count = binary("min", width, columns.count - s * width)
    if p.b_step == 1:
        corner = bound_load(p.b, {**batch, p.column.var: start, **p.at_depth(ZERO)})
        places = ((corner.buffer, corner.indices), (panel, (s, ZERO, ZERO)))
        strides = (from_dim(p.b_column), Imm(width, "int64"))
        transpose = name_of(TABLE[panel.dtype].bits)
        call = TensorIntrinsic(transpose, places, (*strides, count, depth))
        return For(s, strips, "serial", call)
    k, j = names.var("k"), names.var("j")
    place = {p.column.var: start + j, **p.at_depth(k)}
    copy = Store(panel, (s, k, j), bound_load(p.b, {**batch, **place}))
    row = For(s, strips, "serial", For(j, count, "vectorized", copy))
    return For(k, depth, "serial", row)
