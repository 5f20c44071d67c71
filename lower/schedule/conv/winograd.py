"""Convolutions with windows of 3 × 3 by Winograd's minimal filtering F(2 × 2, 3 × 3).

A tile of 2 × 2 results is computed of 4 × 4 places of data: both they and the window are
transformed, multiplied place by place, and the products transformed to the results.  That takes 16
products where the definition takes 36, for each channel; summed over channels they are 16 products
of matrices.  (Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2015.)

The largest error against float64, of 64 to 512 channels of normal numbers and weights that keep
their variance, is 1.7e-6 to 2.8e-6; that of the definition is 4e-6 to 1e-5, as its sums are longer.
A number that is not finite makes NaN of results of its tiles that do not depend on it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.lower.schedule.conv.convolution import Convolution
from relax_egraph.lower.schedule.conv.parts import (
    NOTHING,
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
from relax_egraph.tir.expr import Binary, Buffer, Imm, TirExpr, TirVar, as_expr, from_dim
from relax_egraph.tir.stmt import IfThenElse, Stmt, TirBlock, seq

Matrix = Sequence[Sequence[float]]

DATA: Matrix = ((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1))
WEIGHT: Matrix = ((1, 0, 0), (0.5, 0.5, 0.5), (0.5, -0.5, 0.5), (0, 0, 1))
RESULT: Matrix = ((1, 1, 1, 0), (0, 1, -1, -1))
"""What each is transformed by, along both axes: a row for each place after it."""

WINDOW, SIDE, STEP = 3, 4, 2
"""Taps, places of data and results along each side of a tile."""

PRODUCTS = SIDE * SIDE

FEWEST_TILES = 24
"""How many tiles are transformed at once, at least: four times the rows of the micro-kernel."""

FEWEST_CHANNELS = 16
"""With fewer channels, or features, the transforms take longer than what they save."""

FEWEST_POSITIONS = 128
"""How many results a weight that is no constant has to serve to be worth the transform."""


def is_faster(c: Convolution, *, is_constant: bool) -> bool:
    """Whether this is the fastest way; a weight that `is_constant` is transformed beforehand."""
    return (
        c.taps == (WINDOW, WINDOW)
        and all(w.stride == w.dilation == 1 for w in c.windows)
        and c.groups == 1
        and dims.prove_ge(c.channels, FEWEST_CHANNELS)
        and dims.prove_ge(c.features, FEWEST_CHANNELS)
        and (is_constant or not dims.prove_ge(FEWEST_POSITIONS, _positions(c)))
    )


def _positions(c: Convolution) -> Dim:
    return dims.mul(c.batch.extent, dims.product(a.extent for a in c.positions))


def transformed(c: Convolution, names: Names) -> tuple[Buffer, Stmt]:
    """The weight as panels ``[product, panel, channel, feature]``, and what makes it."""
    panels = Panels.of(c)
    shape = (PRODUCTS, panels.count, c.channels, panels.width)
    made = Buffer(names.fresh("weights"), shape, "float32")
    p, across = turns(panels.count, "p", names)
    channel, j = names.var("c"), names.var("j")

    def element(r: int, s: int) -> TirExpr:
        return c.weight_at(p * panels.width + j, channel, (as_expr(r), as_expr(s)))

    stores = [
        store(made[n, p, channel, j], transform(WEIGHT[n // SIDE], WEIGHT[n % SIDE], element))
        for n in range(PRODUCTS)
    ]
    fill = along(j, panels.columns(p), seq(*stores))
    return made, parallel(across, serial([(channel, from_dim(c.channels))], fill))


def transform(
    left: Sequence[float], right: Sequence[float], element: Callable[[int, int], TirExpr]
) -> TirExpr:
    """``Σ left[i] · right[j] · element(i, j)``, without what is 0."""
    factors = [(x * y, i, j) for i, x in enumerate(left) for j, y in enumerate(right) if x * y]
    total: TirExpr | None = None
    for factor, i, j in sorted(factors, key=lambda f: f[0] < 0):
        size, term = abs(factor), element(i, j)
        part = term if size == 1 else Binary("*", term, Imm(size, "float32"))
        total = part if total is None else Binary("+" if factor > 0 else "-", total, part)
    assert total is not None
    return total


@dataclass(frozen=True, slots=True)
class _Tiles:
    """The tiles of a block: `lines` of as many as cover the result, each `across` tiles long."""

    lines: Cut
    across: Dim

    @property
    def most(self) -> Dim:
        """How many tiles a block has at most."""
        return dims.mul(self.lines.size, self.across)

    @property
    def count(self) -> TirExpr:
        """How many this block has."""
        return self.lines.count * from_dim(self.across)

    def number(self, line: TirExpr, column: TirExpr) -> TirExpr:
        """The number of a tile in its block."""
        return line * from_dim(self.across) + column


def by_tiles(
    c: Convolution, source: Source, weight: Buffer, results: Results, names: Names
) -> Stmt:
    """The convolution of data with channels last and a `transformed` weight."""
    down, across = (dims.floordiv(dims.add(a.extent, STEP - 1), STEP) for a in c.positions)
    lines = -(-FEWEST_TILES // across) if isinstance(across, int) and across > 0 else STEP
    tiles = _Tiles(cut(down, lines, "io", names), across)
    b, batch = turns(c.batch.extent, "b", names)
    panels = Panels.of(c)
    p, over_panels = turns(panels.count, "p", names)
    data = Buffer(names.fresh("data"), (PRODUCTS, tiles.most, c.channels), "float32")
    made = Buffer(names.fresh("products"), (PRODUCTS, tiles.most, panels.width), "float32")
    n = names.var("n")
    size = (tiles.count, panels.columns(p), from_dim(c.channels))
    strides = (c.channels, panels.width, panels.width)
    multiply = gemm(
        data[n, ZERO, ZERO], weight[n, p, ZERO, ZERO], made[n, ZERO, ZERO], strides, size
    )
    multiply = serial([(n, as_expr(PRODUCTS))], multiply)
    panel = _Panel(c, tiles, results, made, b, p * panels.width, panels.columns(p), names)
    stores = panel.by_positions() if results.features_last else panel.by_features()
    body = around(over_panels, seq(multiply, stores))
    fill = _transformed_data(c, tiles, source, data, b, names)
    body = TirBlock("tiles", (), seq(fill, body), allocs=(data, made))
    return parallel((*batch, *tiles.lines.blocks), body)


def _transformed_data(
    c: Convolution, tiles: _Tiles, source: Source, data: Buffer, b: TirExpr, names: Names
) -> Stmt:
    """The data of all tiles.  What is at an edge is copied first, with zeros around it."""
    line, column, y, x = (names.var(prefix) for prefix in ("t", "t", "y", "x"))
    number, channels = tiles.number(line, column), from_dim(c.channels)
    patch = Buffer(names.fresh("patch"), (SIDE, SIDE, c.channels), "float32")

    def fill(element: Callable[[TirExpr, TirExpr, TirVar], TirExpr]) -> Stmt:
        v = names.var("v")
        stores = [
            store(
                data[n, number, v],
                transform(
                    DATA[n // SIDE],
                    DATA[n % SIDE],
                    lambda i, j: element(as_expr(i), as_expr(j), v),
                ),
            )
            for n in range(PRODUCTS)
        ]
        return along(v, channels, seq(*stores))

    i, j, v = names.var("i"), names.var("j"), names.var("v")
    places = [(at, w.extent) for at, w in zip((y + i, x + j), c.windows, strict=True)]
    inside = along(v, channels, store(patch[i, j, v], source.at(b, (y + i, x + j), v)))
    v = names.var("v")
    outside = along(v, channels, store(patch[i, j, v], NOTHING))
    side = as_expr(SIDE)
    copy = serial([(i, side), (j, side)], IfThenElse(within(places), inside, outside))
    at_edge = seq(copy, fill(lambda i, j, v: patch[i, j, v]))
    whole = fill(lambda i, j, v: source.at(b, (y + i, x + j), v))
    corners = [(at, dims.sub(w.extent, SIDE - 1)) for at, w in zip((y, x), c.windows, strict=True)]
    places = ((tiles.lines.start + line) * STEP, column * STEP)
    begins = [w.seen(at, ZERO) for w, at in zip(c.windows, places, strict=True)]
    body = let((y, x), begins, IfThenElse(within(corners), whole, at_edge))
    loops = [(line, tiles.lines.count), (column, from_dim(tiles.across))]
    return TirBlock("transform", (), serial(loops, body), allocs=(patch,))


@dataclass(frozen=True, slots=True)
class _Panel:
    """The results of `columns` features from `start` on, of the `products` of all tiles."""

    c: Convolution
    tiles: _Tiles
    results: Results
    products: Buffer
    batch: TirExpr
    start: TirExpr
    columns: TirExpr
    names: Names

    def by_positions(self) -> Stmt:
        """Tile by tile: each result of a tile that is there."""
        line, column, y, x = (self.names.var(prefix) for prefix in ("t", "t", "y", "x"))
        number = self.tiles.number(line, column)
        stores: list[Stmt] = []
        for i in range(STEP):
            for j in range(STEP):
                v = self.names.var("v")
                at = (y + i, x + j)
                one = self.results.of(self._element(i, j, number, v), self._point(at, v))
                own = [
                    (place, axis.extent)
                    for place, axis, beside in zip(at, self.c.positions, (i, j), strict=True)
                    if beside and not dims.divides(STEP, axis.extent)
                ]
                body: Stmt = along(v, self.columns, one)
                for place, extent in own:
                    body = IfThenElse(Binary("<", place, from_dim(extent)), body)
                stores.append(body)
        corner = ((self.tiles.lines.start + line) * STEP, column * STEP)
        loops = [(line, self.tiles.lines.count), (column, from_dim(self.tiles.across))]
        return serial(loops, let((y, x), corner, seq(*stores)))

    def by_features(self) -> Stmt:
        """Line by line: the results of a line of tiles, then those of each feature."""
        down, along_line = self.c.positions
        line, column, v, i = (self.names.var(prefix) for prefix in ("t", "t", "v", "i"))
        number = self.tiles.number(line, column)
        shape = (STEP, dims.mul(self.tiles.across, STEP), self.products.shape[-1])
        tile = Buffer(self.names.fresh("line"), shape, "float32")
        stores = [
            store(tile[k, column * STEP + j, v], self._element(k, j, number, v))
            for k in range(STEP)
            for j in range(STEP)
        ]
        loops = [(column, from_dim(self.tiles.across))]
        fill = serial(loops, along(v, self.columns, seq(*stores)))
        at = (self.tiles.lines.start + line) * STEP + i

        def point(row: TirExpr, feature: TirExpr) -> Point:
            return self._point((at, row), feature)

        size = (from_dim(along_line.extent), self.columns)
        out = self.results.of_tile(tile[i, ZERO, ZERO], size, point, self.names)
        out = IfThenElse(Binary("<", at, from_dim(down.extent)), out)
        body = seq(fill, serial([(i, as_expr(STEP))], out))
        body = serial([(line, self.tiles.lines.count)], body)
        return TirBlock("lines", (), body, allocs=(tile,))

    def _element(self, i: int, j: int, number: TirExpr, v: TirVar) -> TirExpr:
        def product(k: int, n: int) -> TirExpr:
            return self.products[k * SIDE + n, number, v]

        return transform(RESULT[i], RESULT[j], product)

    def _point(self, at: Sequence[TirExpr], feature: TirExpr) -> Point:
        places = {a.var: place for a, place in zip(self.c.positions, at, strict=True)}
        return {**places, self.c.batch.var: self.batch, self.c.feature.var: self.start + feature}
