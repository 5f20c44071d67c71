"""Convolutions as products: the window of each position is gathered to a row (im2col).

The rows of a block of positions are gathered at once, and stay in the second-level cache while they
are multiplied with all panels of the weight.  Padding is gathered as zeros.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.lower.emit.machine import scheduled_machine
from relax_egraph.lower.intrinsics.tile_sizes import micro_tile, piece
from relax_egraph.lower.schedule.conv.convolution import Convolution
from relax_egraph.lower.schedule.conv.joined import Factors, Windows, apart
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
    unflatten,
    within,
)
from relax_egraph.lower.schedule.conv.positions import SETS
from relax_egraph.lower.schedule.conv.results import Results
from relax_egraph.lower.schedule.cut import cut, cut_sum
from relax_egraph.lower.schedule.epilogue import Point
from relax_egraph.lower.schedule.loops import ZERO, Collapse, around, parallel
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.stages import Axis
from relax_egraph.tir.expr import Buffer, BufferLoad, TirExpr, TirVar, binary, from_dim
from relax_egraph.tir.stmt import IfThenElse, Stmt, TirBlock, seq

SCRATCH = 96 * 1024
"""The floats of the rows that are gathered at once: 384 KiB."""

FEWEST_ROWS, MOST_ROWS = 24, 96
"""The minimal rows, to make use of a panel, and the maximal rows, to share the work."""


@dataclass(frozen=True, slots=True)
class Target:
    """A `packed` weight to multiply rows with, and the stores of the products."""

    weight: Buffer
    results: Results


def by_rows(
    c: Convolution, source: Source, targets: Sequence[Target], merged: Collapse, names: Names
) -> Stmt:
    """Convolutions of data with channels last, which differ only in their `targets`.

    `merged` are the axes of the positions, collapsed as far as the results allow.
    """
    *outer, row = merged.axes or (Axis(names.var("q"), 1),)
    lines, values = names.renamed(outer, "i")
    height = _block_height(row.extent, c.depth)
    block = cut(row.extent, height, "io", names)
    b, batch = turns(c.batch.extent, "b", names)
    g, groups = turns(c.groups, "g", names)
    rows = Buffer(names.fresh("rows"), (height, *c.taps, c.channels), "float32")
    in_order = not outer and _is_in_order(c)

    def seen(taps: Sequence[TirExpr], channel: TirExpr) -> BufferLoad:
        if not in_order:
            return rows[(ZERO, *taps, channel)]
        *above, last = taps
        return source.at(b, [*above, binary("+", block.start, last)], channel)

    windows = Windows(seen, *(source.strides if in_order else (c.depth, 1)))
    i, places = names.var("i"), [names.var("y") for _ in c.windows]
    positions = _positions(c, merged, values, row, block.start + i)
    begins = [w.seen(p, ZERO) for w, p in zip(c.windows, positions, strict=True)]
    gather = _Gather(c, source, rows, b, g * from_dim(c.channels), names)
    fill = serial([(i, block.count)], let(places, begins, gather.window(i, places)))

    def product(target: Target) -> Stmt:
        panels = Panels.of(c)
        p, across = turns(panels.count, "p", names)

        def point(r: TirExpr, j: TirExpr) -> Point:
            feature = g * from_dim(c.features) + (p * panels.width + j)
            return {**values, c.batch.var: b, row.var: block.start + r, c.feature.var: feature}

        tile = Buffer(names.fresh("tile"), (height, panels.width), "float32", "local")
        size = (block.count, panels.columns(p))
        multiply = _multiply(c, windows, target.weight, (g, p, ZERO), tile, size, names)
        stores = target.results.of_tile(tile[ZERO, ZERO], size, point, names)
        return around(across, TirBlock("tile", (), seq(multiply, stores), allocs=(tile,)))

    body = seq(*map(product, targets))
    if not in_order:
        body = TirBlock("rows", (), seq(fill, body), allocs=(rows,))
    return parallel((*batch, *groups, *lines, *block.blocks), body)


def _is_in_order(c: Convolution) -> bool:
    """Whether the windows, one after the other, are the data itself."""
    return c.groups == 1 and all(
        w.size == w.stride == 1 and w.before == 0 and dims.equal(w.extent, w.position.extent)
        for w in c.windows
    )


def reads_planes(c: Convolution) -> bool:
    """Whether the data of `c` is best read where it lies, if that is with its places last.

    Channels at a distance of half a page share few sets of the first-level cache.
    """
    source = Source.of(c)
    if not (_is_in_order(c) and source.places_last) or Panels.of(c).is_narrow:
        return False
    _, channel = source.strides
    by_lane = scheduled_machine().multiplies_by_lane  # which needs adjacent channels
    return isinstance(channel, int) and channel % SETS != 0 and not by_lane


def _block_height(rows: Dim, depth: Dim) -> int:
    """The rows to gather at once; equal parts if the number of `rows` is constant."""
    most, tall = MOST_ROWS // 2, micro_tile(scheduled_machine()).rows
    if isinstance(depth, int):
        fitting = SCRATCH // max(1, depth) // tall * tall
        most = min(MOST_ROWS, max(FEWEST_ROWS, fitting))
    if not isinstance(rows, int) or rows <= 0:
        return most
    parts = -(-rows // most)
    return -(-rows // (parts * tall)) * tall


def _positions(
    c: Convolution, merged: Collapse, values: Point, row: Axis, number: TirExpr
) -> list[TirExpr]:
    """The position along each axis of the window, in the row `number`.

    An axis that is merged into a later one is a digit of the next remaining axis; `row` may be the
    variable of an axis of extent 1, into which others are merged.
    """
    positions: dict[TirVar, TirExpr] = {}
    digits: list[Axis] = []
    for axis in c.positions:
        if axis.extent != 1:
            digits.append(axis)
        if axis.var is row.var or (axis.extent != 1 and axis.var not in merged.values):
            turn = number if axis.var is row.var else values[axis.var]
            positions |= zip((a.var for a in digits), unflatten(turn, digits), strict=True)
            digits = []
    return [positions.get(a.var, ZERO) for a in c.positions]


def _multiply(
    c: Convolution,
    windows: Windows,
    weight: Buffer,
    panel: tuple[TirExpr, TirExpr, TirExpr],
    tile: Buffer,
    size: tuple[TirExpr, TirExpr],
    names: Names,
) -> Stmt:
    """The product of all `windows` with a `panel` of the weight, piece by piece."""
    pieces = cut_sum(c.depth, piece(scheduled_machine()), "ko", names)
    begin = [ZERO] * len(c.taps)
    panels, width = Panels.of(c), tile.shape[1]
    strips = panels.of_depth(c.depth)
    call = gemm(
        windows.at(begin, pieces.start),
        weight[(*panel, *begin, pieces.start, ZERO)],
        tile[ZERO, ZERO],
        panels,
        c.depth,
        (windows.row, windows.channel, width),
        (*size, pieces.count),
        binary("min", 1, pieces.blocks[0].var) if pieces.blocks else ZERO,
        strips.following(pieces, from_dim(strips.width)),
    )

    def factor(taps: Sequence[TirExpr], channel: TirExpr) -> BufferLoad:
        return weight[(*panel, *taps, channel, ZERO)]

    factors = Factors(factor, width)
    return apart(c, around(pieces.blocks, call), windows, factors, tile, size, names)


@dataclass(frozen=True, slots=True)
class _Gather:
    """Copies the window on data at `batch`, from `channel` on, to a row of `rows`."""

    c: Convolution
    source: Source
    rows: Buffer
    batch: TirExpr
    channel: TirExpr
    names: Names

    def window(self, i: TirVar, begins: Sequence[TirVar]) -> Stmt:
        """Copy the window that begins at `begins` to row `i`."""
        *outer, last = self.c.windows
        *above, begin = begins
        taps = [self.names.var("k") for _ in outer]
        at = [y + k * w.dilation for y, k, w in zip(above, taps, outer, strict=True)]
        width = dims.mul(last.size, self.c.channels)
        body = self._line((i, *taps), at, begin)
        if outer:
            is_inside = within([(y, w.extent) for y, w in zip(at, outer, strict=True)])
            zeros = self._run((i, *taps, ZERO), width, lambda _: FLOAT_ZERO)
            body = IfThenElse(is_inside, body, zeros)
        return serial([(k, from_dim(w.size)) for k, w in zip(taps, outer, strict=True)], body)

    def _line(self, row: Sequence[TirExpr], at: Sequence[TirExpr], begin: TirVar) -> Stmt:
        """Copy the taps along the last axis: at once if they are adjacent in data."""
        last, channels = self.c.windows[-1], self.c.channels

        def source_at(tap: TirExpr) -> Callable[[TirVar], TirExpr]:
            place = (*at, begin + tap * last.dilation)
            return lambda v: self.source.at(self.batch, place, self.channel + v)

        k = self.names.var("k")
        one = IfThenElse(
            within([(begin + k * last.dilation, last.extent)]),
            self._run((*row, k), channels, source_at(k)),
            self._run((*row, k), channels, lambda _: FLOAT_ZERO),
        )
        each = serial([(k, from_dim(last.size))], one)
        if last.dilation != 1 or self.c.groups != 1:
            return each
        whole = self._run((*row, ZERO), dims.mul(last.size, channels), source_at(ZERO))
        places = dims.add(dims.sub(last.extent, last.size), 1)
        return IfThenElse(within([(begin, places)]), whole, each)

    def _run(self, row: Sequence[TirExpr], count: Dim, value: Callable[[TirVar], TirExpr]) -> Stmt:
        v = self.names.var("v")
        return along(v, from_dim(count), store(self.rows[(*row, v)], value(v)))
