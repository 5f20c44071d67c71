"""Products of matrices: tiles by the micro-kernel ``gemm_tile``, the epilogue on the hot tile.

The output is cut into tiles of 6 rows by 64 columns.  A tile is computed over the whole depth
into a local buffer, then what follows the product is computed from it into the outputs.  With
nothing to follow, the tile goes to the output itself.  Large right operands are packed.
"""

from collections.abc import Sequence

from relax_egraph.lower.schedule.inline import inline, reads_of
from relax_egraph.lower.schedule.loops import ZERO, around, store_loops
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.panels import Nest, by_panels, is_worth_packing
from relax_egraph.lower.schedule.product import bound_load, match_product
from relax_egraph.lower.schedule.scheduled import finished
from relax_egraph.lower.schedule.stages import Stage
from relax_egraph.lower.schedule.tiles import (
    TILE_COLUMNS,
    TILE_ROWS,
    Epilogue,
    Operands,
    cut,
    multiply,
    target_of,
)
from relax_egraph.tir.expr import Buffer, from_dim
from relax_egraph.tir.rewrite import loads
from relax_egraph.tir.stmt import IfThenElse, PrimFunc, Stmt, TirBlock, seq


def apply(function: PrimFunc, stages: Sequence[Stage]) -> PrimFunc | None:
    """The schedule of `function` if it is one product, and maps of it of the same shape.

    What does not need the product, and is not cheap enough to be inlined, is computed before.
    """
    products = [s for s in stages if match_product(s)]
    if len(products) != 1:
        return None
    kept = [load.buffer for load in loads(products[0].value)]
    stages = inline(stages, (*function.outputs, *kept, products[0].buffer))
    first = next(s for s in stages if s.buffer is products[0].buffer)
    rest: list[Stage] = []
    for stage in stages:
        if any(stage.reads(s.buffer) for s in (first, *rest)):
            rest.append(stage)
    before = [s for s in stages if s is not first and s not in rest]
    if any(s.reduction for s in before) or not all(follows(s, first, rest) for s in rest):
        return None
    names = Names.beside(function)
    is_output = any(first.buffer is b for b in function.outputs)
    nests = [store_loops((s,), names) for s in before]
    nest = tiles(first, rest, names, is_output=is_output)
    return finished(function, "matmul", [*nests, nest.body], nest.allocs)


def follows(stage: Stage, product: Stage, rest: Sequence[Stage]) -> bool:
    """Whether `stage` can be computed tile by tile, with `product` and the stages of `rest`."""
    return (
        stage.reduction is None
        and stage.axes == product.axes
        and all(
            r.indices == stage.indices for c in (product, *rest) for r in reads_of(stage, c.buffer)
        )
    )


def tiles(product: Stage, rest: Sequence[Stage], names: Names, *, is_output: bool) -> Nest:
    """`product`, and the stages of `rest` that follow it, in one nest over tiles.

    `is_output` says whether the product itself is needed too.
    """
    p = match_product(product, rest)
    assert p is not None, f"{product.name} is no product"
    epilogue = Epilogue(p, tuple(rest), is_output)
    gains = is_worth_packing(p)
    if gains is False:
        return Nest(in_place(epilogue, names))
    packed = by_panels(epilogue, names)
    if gains is True:
        return packed
    return Nest(IfThenElse(gains, packed.body, in_place(epilogue, names)), packed.allocs)


def in_place(epilogue: Epilogue, names: Names) -> Stmt:
    """The tiles with both operands read where they are: nothing to prepare, but strided."""
    p = epilogue.product
    batch, values = names.renamed(p.batch, "b")
    columns = cut(p.column.extent, TILE_COLUMNS, "jo", names)
    rows = cut(p.row.extent if p.row else 1, TILE_ROWS, "io", names)
    corner = {**values, **p.point(rows.start, columns.start)}
    origin = {**corner, **p.at_depth(ZERO)}
    operands = Operands(bound_load(p.a, origin), bound_load(p.b, origin), p.b_step)
    size = (rows.count, columns.count, from_dim(p.depth.extent if p.depth else 1))
    blocks = (*batch, *columns.blocks, *rows.blocks)
    if not epilogue.rest:
        return around(blocks, multiply(p, operands, (target_of(p, corner), p.c_row), size))
    tile = Buffer(names.fresh("tile"), (TILE_ROWS, TILE_COLUMNS), "float32", "local")
    fill = multiply(p, operands, (tile[0, 0], TILE_COLUMNS), size)
    start = (rows.start, columns.start)
    stores = epilogue.over(tile[0, 0], start, size[:2], values, names)
    return around(blocks, TirBlock("tile", (), seq(fill, stores), allocs=(tile,)))
