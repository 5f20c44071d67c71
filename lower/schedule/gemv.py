"""Products of a few rows with a matrix, which is streamed once, row by row.

A strip of the result stays in the first-level cache; several rows of the matrix at a time are added
to it, so the matrix is read sequentially.
"""

from collections.abc import Callable, Sequence

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.lower.schedule.cut import cut
from relax_egraph.lower.schedule.epilogue import Epilogue
from relax_egraph.lower.schedule.loops import WHOLE, ZERO, parallel
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.product import bound_load
from relax_egraph.lower.schedule.tiles import target_of
from relax_egraph.tir.expr import Binary, Buffer, BufferLoad, Imm, TirExpr, TirVar, from_dim
from relax_egraph.tir.stmt import For, Stmt, Store, TirBlock, seq

STRIP = 1024
"""The maximal columns of a strip: 4 KiB of sums, and a page of each row of the matrix.

Narrower strips read memory in shorter pieces, at a lower rate; wider ones are too few for threads.
"""

TOGETHER = 8
"""The rows of the matrix that are added at once, to save reads and writes of the sums."""


def few_rows(epilogue: Epilogue, most: int, names: Names) -> Stmt:
    """The loops of a product with at most `most` rows, and of its epilogue.

    The matrix is contiguous along its columns.
    """
    p = epilogue.product
    batch, values = names.renamed(p.batch, "b")
    columns = cut(p.column.extent, _width(p.column.extent), "jo", names)
    strip = Buffer(names.fresh("strip"), (most, columns.size), p.dtype, "local")

    def point(i: TirExpr, j: TirExpr) -> dict[TirVar, TirExpr]:
        return {**values, **p.point(i, columns.start + j)}

    def total(i: TirExpr, j: TirExpr) -> BufferLoad:
        return strip[i, j] if epilogue.rest else target_of(p, point(i, j))

    def along(body: Callable[[TirExpr, TirExpr], Stmt]) -> Stmt:
        j = names.var("j")
        if p.row is None:
            return For(j, columns.count, "vectorized", body(ZERO, j))
        i = names.var("i")
        row = For(j, columns.count, "vectorized", body(i, j))
        return For(i, from_dim(p.row.extent), "serial", row)

    def add(steps: Sequence[TirExpr]) -> Stmt:
        def update(i: TirExpr, j: TirExpr) -> Stmt:
            place = total(i, j)
            value: TirExpr = place
            for step in steps:
                at = {**point(i, j), **p.at_depth(step)}
                value = Binary("+", value, Binary("*", bound_load(p.a, at), p.right(at)))
            return Store(place.buffer, place.indices, value)

        return along(update)

    def clear(i: TirExpr, j: TirExpr) -> Stmt:
        place = total(i, j)
        return Store(place.buffer, place.indices, Imm(0, p.dtype))

    depth = p.depth.extent if p.depth else 1
    rounds = dims.floordiv(depth, TOGETHER)
    done = dims.mul(rounds, TOGETHER)
    k = names.var("k")
    main = For(k, from_dim(rounds), "serial", add([k * TOGETHER + s for s in range(TOGETHER)]))
    body = seq(along(clear), main)
    if remainder := dims.sub(depth, done):
        step = names.var("k")
        body = seq(body, For(step, from_dim(remainder), "serial", add([from_dim(done) + step])))
    if epilogue.rest:
        stores = along(lambda i, j: epilogue.on(strip[i, j], point(i, j)))
        body = TirBlock("strip", (), seq(body, stores), allocs=(strip,))
    return parallel((*batch, *columns.blocks), body)


def _width(columns: Dim) -> int:
    """The columns of a strip; strips are about equally wide if their number is constant."""
    if not isinstance(columns, int) or columns <= STRIP:
        return STRIP
    return -(-columns // -(-columns // STRIP) // WHOLE) * WHOLE
