"""Products that read both operands in place, which may be strided."""

from relax_egraph.lower.emit.machine import scheduled_machine
from relax_egraph.lower.intrinsics.row import strip_columns
from relax_egraph.lower.intrinsics.tile_sizes import BLOCK_COLUMNS, PAGES, piece
from relax_egraph.lower.schedule.cut import Cut, cut
from relax_egraph.lower.schedule.epilogue import Epilogue, Point
from relax_egraph.lower.schedule.loops import parallel
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.product import Product, bound_load
from relax_egraph.lower.schedule.tiles import RightOperand, block, cut_rows
from relax_egraph.tir.expr import BufferLoad, TirExpr, from_dim
from relax_egraph.tir.stmt import Stmt


def in_place(epilogue: Epilogue, names: Names) -> Stmt:
    """The blocks of the product, each reading its columns of the right operand."""
    p = epilogue.product
    batch, values = names.renamed(p.batch, "b")
    rows = cut_rows(p, names)
    columns = cut(p.column.extent, BLOCK_COLUMNS, "jo", names)
    body = block(epilogue, right_in_place(p, columns, values), rows, columns, values, names)
    return parallel((*batch, *rows.blocks, *columns.blocks), body)


def right_in_place(p: Product, columns: Cut, values: Point) -> RightOperand:
    """The right operand of a block of `columns`, where it lies, for a point of the batch."""

    def row(k: TirExpr) -> BufferLoad:
        return bound_load(p.b, {**values, p.column.var: columns.start, **p.at_depth(k)})

    line, steps = strip_columns(p.b.buffer.dtype), min(PAGES, piece(scheduled_machine(), p.bits))
    return RightOperand(row, from_dim(p.b_step), line, steps)
