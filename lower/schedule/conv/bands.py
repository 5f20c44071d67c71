"""Convolutions with few features: windows are multiplied in place, in bands of lines.

A band is copied once, with its padding, for all windows on it; gathering each window would take as
long as multiplying it with so few features.
"""

from collections.abc import Sequence

from relax_egraph.ir import dims
from relax_egraph.lower.schedule.conv.band import BAND, Band, lines_of_block, smallest
from relax_egraph.lower.schedule.conv.convolution import Convolution
from relax_egraph.lower.schedule.conv.joined import Factors, Windows, apart
from relax_egraph.lower.schedule.conv.parts import Panels, Size, Source, equal_parts, serial, turns
from relax_egraph.lower.schedule.conv.results import Results
from relax_egraph.lower.schedule.cut import cut
from relax_egraph.lower.schedule.epilogue import Point
from relax_egraph.lower.schedule.loops import ZERO, around, parallel
from relax_egraph.lower.schedule.names import Names
from relax_egraph.tir.expr import Buffer, BufferLoad, TirExpr, binary, from_dim
from relax_egraph.tir.stmt import Stmt, TensorIntrinsic, TirBlock, seq

MOST_FEATURES = 64
"""The maximal features of a group; with more, gathering windows is negligible."""

FEWEST_IN_LINE = 8
"""The minimal positions of a line; with fewer, windows of several lines are multiplied at once."""

MOST_BANDS = 4
"""The maximal size of a band for a single line, relative to `BAND`."""

MOST_ROWS = 96
"""The maximal positions that are computed at once."""


def is_faster(c: Convolution) -> bool:
    """Whether this is faster than gathering windows: for lines of medium length."""
    if len(c.windows) < 2:
        return False
    size = smallest(c)
    if isinstance(size, int) and size > MOST_BANDS * BAND:
        return False
    has_few_features = isinstance(c.features, int) and c.features <= MOST_FEATURES
    width = c.windows[-1].position.extent
    has_long_lines = not isinstance(width, int) or width >= FEWEST_IN_LINE
    return has_few_features and any(d != 1 for d in c.taps) and (has_long_lines or c.groups != 1)


def sees_planes(c: Convolution) -> bool:
    """Whether bands can have the layout of data, with the places of a line adjacent."""
    return Source.of(c).places_last and c.windows[-1].dilation == 1


def by_bands(
    c: Convolution, source: Source, weight: Buffer, results: Results, names: Names
) -> Stmt:
    """The convolution of data with channels last and a `packed` weight."""
    *outer, down, across = c.windows
    axes, values = names.renamed([w.position for w in outer], "i")
    block = cut(down.position.extent, lines_of_block(c), "io", names)
    b, batch = turns(c.batch.extent, "b", names)
    places = [values[w.position.var] for w in outer]
    band = Band.of(c, source, (b, places), block, names)
    line, g, p = names.var("l"), names.var("g"), names.var("p")
    panels, row = Panels.of(c), across.position
    piece = cut(row.extent, equal_parts(row.extent, MOST_ROWS), "jo", names)
    tile = Buffer(names.fresh("tile"), (piece.size, panels.width), "float32", "local")
    size = (piece.count, panels.columns(p))

    def point(r: TirExpr, j: TirExpr) -> Point:
        at = {down.position.var: block.start + line, row.var: piece.start + r}
        feature = g * from_dim(c.features) + (p * panels.width + j)
        return {**values, **at, c.batch.var: b, c.feature.var: feature}

    corner = (line, piece.start)
    panel = (g, p, ZERO)
    product = _multiply(c, band, weight, panel, tile, corner, size, names)
    windows, factors = _windows(c, band, g, corner), _factors(c, band, weight, panel)
    multiply = apart(c, product, windows, factors, tile, size, names)
    stores = results.of_tile(tile[ZERO, ZERO], size, point, names)
    body: Stmt = TirBlock("tile", (), seq(multiply, stores), allocs=(tile,))
    loops = [(g, from_dim(c.groups)), (p, from_dim(panels.count)), (line, block.count)]
    body = seq(band.fill(names), serial(loops, around(piece.blocks, body)))
    body = TirBlock("band", (), body, allocs=(band.buffer,))
    return parallel((*batch, *axes, *block.blocks), body)


def _multiply(
    c: Convolution,
    band: Band,
    weight: Buffer,
    panel: tuple[TirExpr, TirExpr, TirExpr],
    tile: Buffer,
    corner: tuple[TirExpr, TirExpr],
    size: Size,
    names: Names,
) -> Stmt:
    """The product of the windows from `corner` (line, position) on with a `panel` of the weight.

    Adjacent taps of a single group are one run.
    """
    *outer, down, across = band.windows
    (line, start), tile_row = corner, tile.shape[1]
    channel, place = panel[0] * from_dim(c.channels), start * across.stride
    taps = [names.var("k") for _ in outer]
    *_, first, second = band.buffer.shape
    if band.source.channels_last:
        (width, channels), origin = (first, second), (place, channel)
        is_run = c.groups == 1 and across.dilation == 1
        run = dims.mul(across.size, c.channels)
        over = (1, run) if is_run else (across.size, c.channels)
        row, tap = dims.mul(across.stride, channels), dims.mul(across.dilation, channels)
    else:
        (channels, width), origin = (first, second), (channel, place)
        over = (c.channels, across.size)
        row, tap = across.stride, width
    line_step = dims.mul(down.dilation, dims.mul(width, channels))
    strips = Panels.of(c).of_depth(c.depth)
    strides = (row, line_step, tap, strips.width, strips.line, tile_row)
    origin = (*taps, line * down.stride, *origin)
    zeros = [ZERO] * 4
    places = (band.buffer, origin), (weight, (*panel, *taps, *zeros)), (tile, (ZERO, ZERO))
    adds = binary("min", 1, sum(taps, start=ZERO)) if taps else ZERO
    scalars = (*map(from_dim, strides), *size, *map(from_dim, (down.size, *over)), adds)
    call = TensorIntrinsic("window_tile", places, scalars)
    return serial([(k, from_dim(w.size)) for k, w in zip(taps, outer, strict=True)], call)


def _windows(
    c: Convolution, band: Band, group: TirExpr, corner: tuple[TirExpr, TirExpr]
) -> Windows:
    """The windows of a `group` from `corner` (line, position) on."""
    *_, down, across = band.windows
    line, start = corner
    first = group * from_dim(c.channels)

    def at(taps: Sequence[TirExpr], channel: TirExpr) -> BufferLoad:
        *above, k, j = taps
        y, x = line * down.stride + k * down.dilation, start * across.stride + j * across.dilation
        inner = (x, first + channel) if band.source.channels_last else (first + channel, x)
        return band.buffer[(*above, y, *inner)]

    inner = band.buffer.shape[-1]
    if band.source.channels_last:
        return Windows(at, dims.mul(across.stride, inner), 1)
    return Windows(at, across.stride, inner)


def _factors(
    c: Convolution, band: Band, weight: Buffer, panel: tuple[TirExpr, TirExpr, TirExpr]
) -> Factors:
    """The factors in a `panel` of the weight, which is packed in the order of `band`."""
    width = weight.shape[-1]

    def at(taps: Sequence[TirExpr], channel: TirExpr) -> BufferLoad:
        *above, j = taps
        inner = (j, channel) if band.source.channels_last else (channel, j)
        return weight[(*panel, *above, *inner, ZERO)]

    return Factors(at, width if band.source.channels_last else dims.mul(c.taps[-1], width))
