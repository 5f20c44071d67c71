"""Products of matrices: tiles by the micro-kernel ``gemm_tile``, the epilogue on the hot tile.

The output is cut into tiles of 6 rows by 64 columns.  A tile is computed over the whole depth
into a local buffer, then what follows the product is computed from it into the outputs.  With
nothing to follow, the tile goes to the output itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.lower.schedule.inline import inline, reads_of
from relax_egraph.lower.schedule.loops import ZERO, around, bound, store_loops
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.product import Product, bound_load, match_product
from relax_egraph.lower.schedule.scheduled import finished
from relax_egraph.lower.schedule.stages import Axis, Stage
from relax_egraph.tir.expr import (
    Buffer,
    BufferLoad,
    Imm,
    TirExpr,
    TirVar,
    binary,
    from_dim,
)
from relax_egraph.tir.rewrite import loads, rewrite
from relax_egraph.tir.stmt import For, PrimFunc, Stmt, Store, TensorIntrinsic, TirBlock, seq

TILE_ROWS = 6
TILE_COLUMNS = 64


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
    nests.append(tiles(first, rest, names, is_output=is_output))
    return finished(function, "matmul", nests)


def follows(stage: Stage, product: Stage, rest: Sequence[Stage]) -> bool:
    """Whether `stage` can be computed tile by tile, with `product` and the stages of `rest`."""
    return (
        stage.reduction is None
        and stage.axes == product.axes
        and all(
            r.indices == stage.indices for c in (product, *rest) for r in reads_of(stage, c.buffer)
        )
    )


def tiles(product: Stage, rest: Sequence[Stage], names: Names, *, is_output: bool) -> Stmt:
    """`product`, and the stages of `rest` that follow it, in one nest over tiles.

    `is_output` says whether the product itself is needed too.
    """
    p = match_product(product, rest)
    assert p is not None, f"{product.name} is no product"
    batch, values = names.renamed(p.batch, "b")
    columns = _cut(p.column.extent, TILE_COLUMNS, "jo", names)
    rows = _cut(p.row.extent if p.row else 1, TILE_ROWS, "io", names)
    blocks = (*batch, *columns.blocks, *rows.blocks)
    corner = {**values, **p.point(rows.start, columns.start)}
    target = bound_load(BufferLoad(p.stage.buffer, p.stage.indices), corner)
    if not rest:
        return around(blocks, _multiply(p, corner, target, p.c_row, rows.count, columns.count))
    tile = Buffer(names.fresh("tile"), (TILE_ROWS, TILE_COLUMNS), "float32", "local")
    fill = _multiply(p, corner, tile[0, 0], TILE_COLUMNS, rows.count, columns.count)
    i, j = names.var("i"), names.var("j")
    inside = {**p.values, **values, **p.point(rows.start + i, columns.start + j)}
    stores = [Store(s.buffer, s.indices, s.value) for s in (bound(s, inside) for s in rest)]
    if is_output:
        place = bound_load(BufferLoad(p.stage.buffer, p.stage.indices), inside)
        stores.insert(0, Store(place.buffer, place.indices, place))
    hot = [replace(s, value=_from(p.stage.buffer, tile[i, j], s.value)) for s in stores]
    epilogue = For(i, rows.count, "serial", For(j, columns.count, "vectorized", seq(*hot)))
    return around(blocks, TirBlock("tile", (), seq(fill, epilogue), allocs=(tile,)))


@dataclass(frozen=True, slots=True)
class _Cut:
    """An axis in blocks: the loop over them, where one begins, and how much of it there is."""

    blocks: tuple[Axis, ...]
    start: TirExpr
    count: TirExpr


def _cut(extent: Dim, size: int, name: str, names: Names) -> _Cut:
    if isinstance(extent, int) and extent <= size:
        return _Cut((), ZERO, Imm(extent, "int64"))
    number = dims.floordiv(dims.add(extent, size - 1), size)
    block = Axis(names.var(name), number)
    start = block.var * size
    if dims.divides(size, extent):
        return _Cut((block,), start, Imm(size, "int64"))
    return _Cut((block,), start, binary("min", size, from_dim(extent) - start))


def _multiply(
    p: Product,
    corner: dict[TirVar, TirExpr],
    target: BufferLoad,
    target_row: Dim,
    rows: TirExpr,
    columns: TirExpr,
) -> Stmt:
    """The tile of `p` at `corner`, over the whole depth, into `target`."""
    origin = {**corner, p.depth.var: ZERO} if p.depth else corner
    operands = (bound_load(p.a, origin), bound_load(p.b, origin), target)
    strides = tuple(map(from_dim, (p.a_row, p.a_step, p.b_step, target_row)))
    depth = from_dim(p.depth.extent if p.depth else 1)
    places = tuple((o.buffer, o.indices) for o in operands)
    return TensorIntrinsic("gemm_tile", places, (*strides, rows, columns, depth))


def _from(product: Buffer, element: BufferLoad, value: TirExpr) -> TirExpr:
    """`value` with the element of the tile in place of each read of the product."""
    return rewrite(
        value, lambda e: element if isinstance(e, BufferLoad) and e.buffer is product else e
    )
