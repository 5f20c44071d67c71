"""Tiles of a product of matrices: how axes are cut, how one is computed, what follows on it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.lower.schedule.loops import ZERO, around, bound
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.product import Product, bound_load
from relax_egraph.lower.schedule.stages import Axis, Stage
from relax_egraph.tir.expr import Buffer, BufferLoad, Imm, TirExpr, TirVar, binary, from_dim
from relax_egraph.tir.rewrite import rewrite
from relax_egraph.tir.stmt import For, Stmt, Store, TensorIntrinsic, TirBlock, seq

TILE_ROWS = 6
TILE_COLUMNS = 64

Point = Mapping[TirVar, TirExpr]
"""The values of the variables of a product's axes."""


@dataclass(frozen=True, slots=True)
class Nest:
    """Loops, and the buffers in memory that they need."""

    body: Stmt
    allocs: tuple[Buffer, ...] = ()


@dataclass(frozen=True, slots=True)
class Cut:
    """An axis in blocks: the loop over them, where one begins, and how much of it there is."""

    blocks: tuple[Axis, ...]
    start: TirExpr
    count: TirExpr


def cut(extent: Dim, size: int, name: str, names: Names) -> Cut:
    """An axis of `extent` in blocks of `size`, the last one shorter; no loop if one is enough."""
    if isinstance(extent, int) and extent <= size:
        return Cut((), ZERO, Imm(extent, "int64"))
    block = Axis(names.var(name), dims.floordiv(dims.add(extent, size - 1), size))
    start = block.var * size
    if dims.divides(size, extent):
        return Cut((block,), start, Imm(size, "int64"))
    return Cut((block,), start, binary("min", size, from_dim(extent) - start))


@dataclass(frozen=True, slots=True)
class Operands:
    """Where a tile's operands begin, and how far a step of the depth goes in the right one."""

    a: BufferLoad
    b: BufferLoad
    b_step: Dim


def multiply(
    p: Product,
    operands: Operands,
    target: tuple[BufferLoad, Dim],
    size: tuple[TirExpr, TirExpr, TirExpr],
    adds: TirExpr = ZERO,
) -> Stmt:
    """A tile of `p` into `target`, a place and the distance of its rows.

    `size` is the number of rows, of columns, and of steps of the depth.
    """
    place, target_row = target
    strides = map(from_dim, (p.a_row, p.a_step, operands.b_step, target_row))
    places = tuple((load.buffer, load.indices) for load in (operands.a, operands.b, place))
    return TensorIntrinsic("gemm_tile", places, (*strides, *size, adds))


def target_of(p: Product, point: Point) -> BufferLoad:
    """The element of the product's buffer at `point`."""
    return bound_load(BufferLoad(p.stage.buffer, p.stage.indices), dict(point))


@dataclass(frozen=True, slots=True)
class Epilogue:
    """What is stored of each element of a product: the stages that follow it, perhaps itself."""

    product: Product
    rest: tuple[Stage, ...]
    is_output: bool

    def on(self, tile: BufferLoad, point: Point) -> Stmt:
        """The stores for the element at `point`, which is held in `tile`."""
        p = self.product
        values = {**p.values, **point}
        stores = [
            Store(s.buffer, s.indices, s.value) for s in (bound(s, values) for s in self.rest)
        ]
        if self.is_output:
            place = target_of(p, values)
            stores.insert(0, Store(place.buffer, place.indices, place))

        def held(e: TirExpr) -> TirExpr:
            return tile if isinstance(e, BufferLoad) and e.buffer is p.stage.buffer else e

        return seq(*(replace(s, value=rewrite(s.value, held)) for s in stores))

    def over(
        self,
        tile: BufferLoad,
        start: tuple[TirExpr, TirExpr],
        size: tuple[TirExpr, TirExpr],
        batch: Point,
        names: Names,
    ) -> Stmt:
        """The stores for a tile that begins at row and column `start`, held from `tile` on."""
        i, j = names.var("i"), names.var("j")
        row, column = tile.indices
        held = BufferLoad(tile.buffer, (row + i, column + j))
        point = {**batch, **self.product.point(start[0] + i, start[1] + j)}
        inner = For(j, size[1], "vectorized", self.on(held, point))
        return For(i, size[0], "serial", inner)


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
