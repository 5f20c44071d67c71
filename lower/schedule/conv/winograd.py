"""Convolutions with 3 × 3 windows by Winograd's minimal filtering.

Data and window are transformed, multiplied elementwise, and the products transformed to the
results.  The products of one place of all tiles, summed over channels, are a matrix product.

The transforms take differences, so that an infinity may make a result NaN that is infinite by
definition.  The products of F(2, 3) that a result adds read no other data than its window does:
what lies outside of it decides nothing.  F(4, 3) mixes the whole tile.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.lower.schedule.conv.convolution import Convolution
from relax_egraph.lower.schedule.conv.minimal_filters import F2, F4, WINDOW, Filter, Matrix
from relax_egraph.lower.schedule.conv.parts import (
    FLOAT_ZERO,
    Panels,
    Source,
    along,
    gemm,
    let,
    serial,
    store,
    turns,
    within,
)
from relax_egraph.lower.schedule.conv.results import Results
from relax_egraph.lower.schedule.cut import Cut, cut
from relax_egraph.lower.schedule.epilogue import Point
from relax_egraph.lower.schedule.loops import ZERO, around, parallel
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.stages import Axis
from relax_egraph.tir.expr import (
    Binary,
    Buffer,
    BufferLoad,
    Imm,
    TirExpr,
    TirVar,
    as_expr,
    from_dim,
)
from relax_egraph.tir.stmt import IfThenElse, Stmt, TirBlock, seq

FEWEST_TILES = 24
"""The minimal tiles that are transformed at once: four times the rows of the micro-kernel."""

FEWEST_LARGE_TILES = 24
"""The minimal tiles of an image for F(4, 3): with fewer, reading the larger weight costs more."""

FEWEST_CHANNELS = 16
"""The minimal channels and features: with fewer, the transforms cost more than they save."""

FEWEST_POSITIONS = 128
"""The minimal results for which transforming a weight that is not constant pays."""


def fastest(c: Convolution, *, is_constant: bool, tolerance: float) -> Filter | None:
    """The fastest filter with an error of at most `tolerance`; ``None`` if no filter is faster.

    A weight that `is_constant` is transformed at build time.
    """
    if not (
        c.taps == (WINDOW, WINDOW)
        and all(w.stride == w.dilation == 1 for w in c.windows)
        and c.groups == 1
        and dims.prove_ge(c.channels, FEWEST_CHANNELS)
        and dims.prove_ge(c.features, FEWEST_CHANNELS)
        and (is_constant or not dims.prove_ge(FEWEST_POSITIONS, _positions(c)))
    ):
        return None
    tiles = dims.product(map(partial(_tiles_along, F4), c.positions))
    return F4 if F4.error <= tolerance and dims.prove_ge(tiles, FEWEST_LARGE_TILES) else F2


def _positions(c: Convolution) -> Dim:
    return dims.mul(c.batch.extent, dims.product(a.extent for a in c.positions))


def _tiles_along(filter: Filter, axis: Axis) -> Dim:
    return dims.floordiv(dims.add(axis.extent, filter.step - 1), filter.step)


def transformed(c: Convolution, filter: Filter, names: Names) -> tuple[Buffer, Stmt]:
    """The weight as ``[panel, product, strip, channel, feature]``, and loops to transform it."""
    panels, side = Panels.of(c), filter.side
    shape = (panels.count, filter.products, panels.strips, c.channels, panels.strip)
    weight = Buffer(names.fresh("weights"), shape, "float32")
    p, across = turns(panels.count, "p", names)
    channel = names.var("c")

    def row(strip: TirExpr, v: TirVar, feature: TirExpr) -> Stmt:
        def element(r: int, s: int) -> TirExpr:
            return c.weight_at(feature, channel, (as_expr(r), as_expr(s)))

        def element_of(left: Sequence[float], right: Sequence[float]) -> TirExpr:
            return combined(left, lambda r: combined(right, lambda s: element(r, s)))

        return seq(
            *(
                store(weight[p, i * side + j, strip, channel, v], element_of(left, right))
                for i, left in enumerate(filter.weight)
                for j, right in enumerate(filter.weight)
            )
        )

    fill = panels.fill(p, row, names)
    return weight, parallel(across, serial([(channel, from_dim(c.channels))], fill))


_Element = Callable[[TirExpr, TirExpr, TirVar], TirExpr]
_Place = Callable[[TirExpr, TirExpr, TirVar], BufferLoad]


def _transform(
    matrix: Matrix, element: _Element, half: Buffer, place: _Place, extent: TirExpr, names: Names
) -> Stmt:
    """``place(·, ·, v) = matrix · element(·, ·, v) · matrixᵀ`` for all ``v < extent``.

    The left product is stored in `half`.
    """
    left = _left(matrix, element, half, extent, names)
    i, v = names.var("i"), names.var("v")
    stores = [
        store(place(i, as_expr(j), v), combined(row, lambda k: half[i, k, v]))
        for j, row in enumerate(matrix)
    ]
    return seq(left, serial([(i, as_expr(len(matrix)))], along(v, extent, seq(*stores))))


def _left(matrix: Matrix, element: _Element, half: Buffer, extent: TirExpr, names: Names) -> Stmt:
    """``half = matrix · element``."""
    j, v = names.var("j"), names.var("v")
    stores = [
        store(half[i, j, v], combined(row, lambda k: element(as_expr(k), j, v)))
        for i, row in enumerate(matrix)
    ]
    return serial([(j, from_dim(half.shape[1]))], along(v, extent, seq(*stores)))


def combined(factors: Sequence[float], element: Callable[[int], TirExpr]) -> TirExpr:
    """``Σ factors[i] · element(i)``, without zero terms."""
    total: TirExpr | None = None
    for i, factor in sorted(enumerate(factors), key=lambda f: f[1] < 0):
        if factor == 0:
            continue
        size = factor if total is None else abs(factor)
        part = element(i) if size == 1 else Binary("*", element(i), Imm(size, "float32"))
        total = part if total is None else Binary("+" if factor > 0 else "-", total, part)
    assert total is not None
    return total


@dataclass(frozen=True, slots=True)
class _Tiles:
    """The tiles of a block: `lines` lines of tiles on the result, each `across` tiles long."""

    lines: Cut
    across: Dim

    @property
    def most(self) -> Dim:
        """The maximal number of tiles of a block."""
        return dims.mul(self.lines.size, self.across)

    @property
    def count(self) -> TirExpr:
        """The number of tiles of this block."""
        return self.lines.count * from_dim(self.across)

    def number(self, line: TirExpr, column: TirExpr) -> TirExpr:
        """The number of a tile in its block."""
        return line * from_dim(self.across) + column


def by_tiles(
    c: Convolution,
    filter: Filter,
    source: Source,
    weight: Buffer,
    results: Results,
    names: Names,
) -> Stmt:
    """The convolution of data with channels last and a weight `transformed` for `filter`."""
    down, across = map(partial(_tiles_along, filter), c.positions)
    lines = -(-FEWEST_TILES // across) if isinstance(across, int) and across > 0 else 2
    tiles = _Tiles(cut(down, lines, "io", names), across)
    b, batch = turns(c.batch.extent, "b", names)
    panels = Panels.of(c)
    p, over_panels = turns(panels.count, "p", names)
    data = Buffer(names.fresh("data"), (filter.products, tiles.most, c.channels), "float32")
    shape = (filter.products, tiles.most, panels.width)
    products = Buffer(names.fresh("products"), shape, "float32")
    n = names.var("n")
    size = (tiles.count, panels.columns(p), from_dim(c.channels))
    multiply = gemm(
        data[n, ZERO, ZERO],
        weight[p, n, ZERO, ZERO, ZERO],
        products[n, ZERO, ZERO],
        panels,
        c.channels,
        (c.channels, 1, panels.width),
        size,
        ahead=from_dim(dims.mul(c.channels, panels.width)),
    )
    multiply = serial([(n, as_expr(filter.products))], multiply)
    panel = _Panel(
        c, filter, tiles, results, products, b, p * panels.width, panels.columns(p), names
    )
    stores = panel.by_positions() if results.features_last else panel.by_features()
    body = around(over_panels, seq(multiply, stores))
    fill = _transformed_data(c, filter, tiles, source, data, b, names)
    body = TirBlock("tiles", (), seq(fill, body), allocs=(data, products))
    return parallel((*batch, *tiles.lines.blocks), body)


def _transformed_data(
    c: Convolution,
    filter: Filter,
    tiles: _Tiles,
    source: Source,
    data: Buffer,
    b: TirExpr,
    names: Names,
) -> Stmt:
    """The transformed data of all tiles; tiles at an edge are first copied with their padding."""
    line, column, y, x = (names.var(prefix) for prefix in ("t", "t", "y", "x"))
    number, channels, side = tiles.number(line, column), from_dim(c.channels), filter.side
    shape = (side, side, c.channels)
    patch = Buffer(names.fresh("patch"), shape, "float32")
    half = Buffer(names.fresh("half"), shape, "float32")

    def fill(element: _Element) -> Stmt:
        def place(i: TirExpr, j: TirExpr, v: TirVar) -> BufferLoad:
            return data[i * side + j, number, v]

        return _transform(filter.data, element, half, place, channels, names)

    i, j, v = names.var("i"), names.var("j"), names.var("v")
    places = [(at, w.extent) for at, w in zip((y + i, x + j), c.windows, strict=True)]
    inside = along(v, channels, store(patch[i, j, v], source.at(b, (y + i, x + j), v)))
    v = names.var("v")
    outside = along(v, channels, store(patch[i, j, v], FLOAT_ZERO))
    all_places = [(i, as_expr(side)), (j, as_expr(side))]
    copy = serial(all_places, IfThenElse(within(places), inside, outside))
    at_edge = seq(copy, fill(lambda i, j, v: patch[i, j, v]))
    whole = fill(lambda i, j, v: source.at(b, (y + i, x + j), v))
    corners = [(at, dims.sub(w.extent, side - 1)) for at, w in zip((y, x), c.windows, strict=True)]
    begins = [
        w.seen(at * filter.step, ZERO)
        for w, at in zip(c.windows, (tiles.lines.start + line, column), strict=True)
    ]
    body = let((y, x), begins, IfThenElse(within(corners), whole, at_edge))
    loops = [(line, tiles.lines.count), (column, from_dim(tiles.across))]
    return TirBlock("transform", (), serial(loops, body), allocs=(patch, half))


@dataclass(frozen=True, slots=True)
class _Panel:
    """The results of `columns` features from `start` on, from the `products` of all tiles."""

    c: Convolution
    filter: Filter
    tiles: _Tiles
    results: Results
    products: Buffer
    batch: TirExpr
    start: TirExpr
    columns: TirExpr
    names: Names

    def by_positions(self) -> Stmt:
        """The stores of each result of each tile."""
        step = self.filter.step
        line, column, i, y, x, v = (self.names.var(prefix) for prefix in "ttiyxv")
        half, transform = self._half(self.tiles.number(line, column))
        down, along_line = (a.extent for a in self.c.positions)
        stores: list[Stmt] = []
        for j, row in enumerate(self.filter.result):
            element = combined(row, lambda n: half[i, n, v])
            one: Stmt = along(v, self.columns, self.results.of(element, self._point((y, x + j), v)))
            if j and not dims.divides(step, along_line):
                one = IfThenElse(Binary("<", x + j, from_dim(along_line)), one)
            stores.append(one)
        corner = ((self.tiles.lines.start + line) * step + i, column * step)
        each: Stmt = seq(*stores)
        if not dims.divides(step, down):
            each = IfThenElse(Binary("<", y, from_dim(down)), each)
        each = serial([(i, as_expr(step))], let((y, x), corner, each))
        loops = [(line, self.tiles.lines.count), (column, from_dim(self.tiles.across))]
        return TirBlock("positions", (), serial(loops, seq(transform, each)), allocs=(half,))

    def by_features(self) -> Stmt:
        """The stores of each line of tiles, feature by feature."""
        step = self.filter.step
        down, along_line = self.c.positions
        line, column, i = (self.names.var(prefix) for prefix in ("t", "t", "i"))
        half, transform = self._half(self.tiles.number(line, column))
        shape = (step, dims.mul(self.tiles.across, step), self.products.shape[-1])
        tile = Buffer(self.names.fresh("line"), shape, "float32")
        k, v = self.names.var("k"), self.names.var("v")
        stores = [
            store(tile[k, column * step + j, v], combined(row, lambda n: half[k, n, v]))
            for j, row in enumerate(self.filter.result)
        ]
        transform_columns = serial([(k, as_expr(step))], along(v, self.columns, seq(*stores)))
        fill = serial([(column, from_dim(self.tiles.across))], seq(transform, transform_columns))
        at = (self.tiles.lines.start + line) * step + i

        def point(row: TirExpr, feature: TirExpr) -> Point:
            return self._point((at, row), feature)

        size = (from_dim(along_line.extent), self.columns)
        out = self.results.of_tile(tile[i, ZERO, ZERO], size, point, self.names)
        out = IfThenElse(Binary("<", at, from_dim(down.extent)), out)
        body = seq(fill, serial([(i, as_expr(step))], out))
        body = serial([(line, self.tiles.lines.count)], body)
        return TirBlock("lines", (), body, allocs=(tile, half))

    def _half(self, number: TirExpr) -> tuple[Buffer, Stmt]:
        """The products of the tile `number`, transformed along one axis."""
        side = self.filter.side
        shape = (self.filter.step, side, self.products.shape[-1])
        half = Buffer(self.names.fresh("half"), shape, "float32", "local")

        def product(k: TirExpr, n: TirExpr, v: TirVar) -> TirExpr:
            return self.products[k * side + n, number, v]

        return half, _left(self.filter.result, product, half, self.columns, self.names)

    def _point(self, at: Sequence[TirExpr], feature: TirExpr) -> Point:
        places = {a.var: place for a, place in zip(self.c.positions, at, strict=True)}
        return {**places, self.c.batch.var: self.batch, self.c.feature.var: self.start + feature}
