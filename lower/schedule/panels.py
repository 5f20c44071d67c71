"""Products whose right operand is packed: copied, panel by panel, to where it is contiguous.

Rows of a wide operand lie far apart, so that a strip of it over a long depth does not stay in
the cache.  The depth is cut into pieces, and each piece of a strip copied once for a block of
rows; the sums of the pieces are added up in the result, or in a local buffer if more follows.
"""

from dataclasses import replace

from relax_egraph.ir import dims
from relax_egraph.lower.schedule.loops import ZERO, around
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.product import Product, bound_load
from relax_egraph.lower.schedule.tiles import (
    TILE_COLUMNS,
    TILE_ROWS,
    Cut,
    Epilogue,
    Nest,
    Operands,
    Point,
    cut,
    multiply,
    target_of,
)
from relax_egraph.tir.expr import Binary, Buffer, binary, from_dim
from relax_egraph.tir.stmt import For, IfThenElse, Stmt, Store, TirBlock, seq

PANEL_DEPTH = 512
"""Steps of the depth in a panel: with 64 columns 128 KiB, which stay in the second cache."""

BLOCK_ROWS = 192
"""Rows that share a panel: as many as fit the second cache beside it, and whole tiles."""


def by_panels(epilogue: Epilogue, names: Names) -> Nest:
    """The tiles over packed panels of the right operand."""
    p = epilogue.product
    batch, values = names.renamed(p.batch, "b")
    block = cut(p.row.extent if p.row else 1, BLOCK_ROWS, "ic", names)
    columns = cut(p.column.extent, TILE_COLUMNS, "jo", names)
    pieces = _pieces(p, names)
    panel = Buffer(names.fresh("panel"), (PANEL_DEPTH, TILE_COLUMNS), "float32")
    pack = _pack(p, panel, columns, pieces, values, names)
    tile = names.var("io")
    inside = tile * TILE_ROWS
    size = (binary("min", TILE_ROWS, block.count - inside), columns.count, pieces.count)
    corner = {**values, **p.point(block.start + inside, columns.start)}
    begin = bound_load(p.a, {**corner, **p.at_depth(pieces.start)})
    operands = Operands(begin, panel[0, 0], TILE_COLUMNS)
    adds = binary("min", 1, pieces.blocks[0].var) if pieces.blocks else ZERO
    outer = (*batch, *block.blocks, *columns.blocks)
    tiles = binary("//", block.count + (TILE_ROWS - 1), TILE_ROWS)
    if not epilogue.rest:
        fill = multiply(p, operands, (target_of(p, corner), p.c_row), size, adds)
        body = around(pieces.blocks, seq(pack, For(tile, tiles, "serial", fill)))
        return Nest(around(outer, body), (panel,))
    total = Buffer(names.fresh("total"), (BLOCK_ROWS, TILE_COLUMNS), "float32", "local")
    fill = multiply(p, operands, (total[inside, 0], TILE_COLUMNS), size, adds)
    start = (block.start + inside, columns.start)
    stores = epilogue.over(total[inside, 0], start, size[:2], values, names)
    if pieces.blocks:
        (piece,) = pieces.blocks
        last = Binary("==", piece.var, from_dim(dims.sub(piece.extent, 1)))
        stores = IfThenElse(last, stores)
    body = around(pieces.blocks, seq(pack, For(tile, tiles, "serial", seq(fill, stores))))
    return Nest(around(outer, TirBlock("panel", (), body, allocs=(total,))), (panel,))


def _pieces(p: Product, names: Names) -> Cut:
    """The depth in pieces, at least one: a product over nothing is 0 and not left out."""
    extent = p.depth.extent if p.depth else 1
    pieces = cut(dims.maximum(1, extent), PANEL_DEPTH, "ko", names)
    if isinstance(extent, int) and extent > 0:
        return pieces
    return replace(pieces, count=binary("min", PANEL_DEPTH, from_dim(extent) - pieces.start))


def _pack(p: Product, panel: Buffer, columns: Cut, pieces: Cut, batch: Point, names: Names) -> Stmt:
    k, j = names.var("k"), names.var("j")
    place = {p.column.var: columns.start + j, **p.at_depth(pieces.start + k)}
    copy = Store(panel, (k, j), bound_load(p.b, {**batch, **place}))
    return For(k, pieces.count, "serial", For(j, columns.count, "vectorized", copy))
