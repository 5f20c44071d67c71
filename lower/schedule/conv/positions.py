"""Convolutions of planes in groups of few features: the columns of products are positions.

A vector of so few features would have idle lanes; one of adjacent positions has none.  The lines
that a group reads are copied to a band, with their padding.  Windows may move on from the end of a
line to the next, so all positions of a band are columns of one product; those between two lines are
not stored.  Windows of 1×1 read data where it lies.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from relax_egraph.ir.dims import Dim
from relax_egraph.lower.schedule.conv.convolution import Convolution, Window
from relax_egraph.lower.schedule.conv.depthwise import is_depthwise
from relax_egraph.lower.schedule.conv.joined import LANES
from relax_egraph.lower.schedule.conv.parts import (
    FLOAT_ZERO,
    Source,
    along,
    serial,
    store,
    turns,
    within,
)
from relax_egraph.lower.schedule.conv.results import Results
from relax_egraph.lower.schedule.cut import Cut, cut
from relax_egraph.lower.schedule.epilogue import Point
from relax_egraph.lower.schedule.loops import ZERO, parallel
from relax_egraph.lower.schedule.names import Names
from relax_egraph.tir.expr import Buffer, BufferLoad, TirExpr, from_dim
from relax_egraph.tir.stmt import IfThenElse, Stmt, TensorIntrinsic, TirBlock, seq

MOST_FEATURES = 64
"""The maximal features of one of several groups with 1×1 windows, which are not joined to rows."""

FEWEST_POSITIONS = 128
"""The minimal positions of a plane for as many features."""

ELEMENTS = 1 << 13
"""The elements of a band, and of a tile, unless few lines need more."""

LARGEST = 1 << 16
"""The maximal elements of a band: 256 KiB."""

SETS = 1 << 9
"""Planes at a distance of a multiple of so many elements share few sets of the first-level cache.

It is half a page.
"""


def sees_positions(c: Convolution) -> bool:
    """Whether `c` has few features, constant extents and stride 1, and stays in planes."""
    if c.is_transposed or is_depthwise(c) or len(c.windows) != 2:
        return False
    if not Source.of(c).places_last or c.stage.indices[-1] is not c.positions[-1].var:
        return False
    if any(w.stride != 1 or w.before < 0 for w in c.windows):
        return False
    extents = _Extents.of(c)
    return extents is not None and extents.has_few_features and extents.band(1) <= LARGEST


@dataclass(frozen=True, slots=True)
class _Extents:
    """Constant extents of a convolution.

    A group has `channels` and `features`; its windows have `taps`, the last ones of which are
    `reach` lines below the first.  There are `lines` of `positions`, which are `width` places of a
    band apart.
    """

    groups: int
    channels: int
    features: int
    taps: int
    reach: int
    lines: int
    positions: int
    width: int

    @classmethod
    def of(cls, c: Convolution) -> "_Extents | None":
        """The extents of `c`, unless one of them is not constant or is 0."""
        down, across = c.windows
        sizes: list[int] = []
        for d in (c.groups, c.channels, c.features, *_sizes(down), *_sizes(across)):
            if not isinstance(d, int) or d < 1:
                return None
            sizes.append(d)
        groups, channels, features, lines, tall, _, positions, wide, _ = sizes
        reach, width = (tall - 1) * down.dilation, positions + (wide - 1) * across.dilation
        return cls(groups, channels, features, tall * wide, reach, lines, positions, width)

    @property
    def has_few_features(self) -> bool:
        """Whether features fill no vector, or are too few to copy data for 1×1 windows."""
        if self.taps > 1 or self.groups == 1 or self.lines * self.positions < FEWEST_POSITIONS:
            return self.features < LANES
        return self.features <= MOST_FEATURES

    def band(self, lines: int) -> int:
        """The elements of a band for some `lines` of results."""
        return self.channels * (lines + self.reach) * self.width

    @property
    def together(self) -> int:
        """The lines of results that share a band, in equal parts: twice its `reach`, if they fit.

        With fewer, the lines that two bands share would be most of those that are copied.
        """
        line = max(self.channels, self.features) * self.width
        near, far = (size // line - self.reach for size in (ELEMENTS, LARGEST))
        most = max(1, near, min(2 * self.reach, far))
        return -(-self.lines // -(-self.lines // most))


def _sizes(w: Window) -> Sequence[Dim]:
    return w.position.extent, w.size, w.extent


def by_positions(c: Convolution, results: Results, names: Names) -> tuple[Buffer, Stmt, Stmt]:
    """The weight by groups, the loops that copy it to that layout, and the convolution."""
    extents = _Extents.of(c)
    assert extents is not None
    b, batch = turns(c.batch.extent, "b", names)
    g, groups = turns(c.groups, "g", names)
    down, across = c.windows
    block = cut(down.position.extent, extents.together, "io", names)
    weight, prepare = _by_groups(c, names)
    width = extents.width
    tile = Buffer(names.fresh("tile"), (extents.features, block.size, width), "float32")
    planes = _in_place(c, extents, block, (b, g)) or _copied(c, extents, block, (b, g), names)
    j, y, x = names.var("j"), names.var("y"), names.var("x")
    point: Point = {
        c.batch.var: b,
        c.feature.var: g * extents.features + j,
        down.position.var: block.start + y,
        across.position.var: x,
    }
    loops = [(j, from_dim(extents.features)), (y, block.count)]
    stores = along(x, from_dim(extents.positions), results.of(tile[j, y, x], point))
    multiply = _multiply(c, extents, weight[(g, *[ZERO] * 4)], planes, tile, block)
    body = seq(*planes.copy, multiply, serial(loops, stores))
    body = TirBlock("band", (), body, allocs=(*planes.buffers, tile))
    return weight, prepare, parallel((*batch, *groups, *block.blocks), body)


def _by_groups(c: Convolution, names: Names) -> tuple[Buffer, Stmt]:
    """The weight as ``[group, feature, channel, *taps]``, and loops that copy it so."""
    shape = (c.groups, c.features, c.channels, *c.taps)
    weight = Buffer(names.fresh("weight"), shape, "float32")
    g, groups = turns(c.groups, "g", names)
    j, k, *taps = at = [names.var(name) for name in "jckk"]
    element = c.weight_at(g * from_dim(c.features) + j, k, taps)
    *outer, (tap, size) = zip(at, map(from_dim, shape[1:]), strict=True)
    copy = serial(outer, along(tap, size, store(weight[(g, *at)], element)))
    return weight, parallel(groups, copy)


@dataclass(frozen=True, slots=True)
class _Planes:
    """The planes that the windows of a block read, from `corner` on, each `size` elements.

    They are data, or `buffers` that `copy` fills.
    """

    corner: BufferLoad
    size: int
    copy: tuple[Stmt, ...] = ()
    buffers: tuple[Buffer, ...] = ()


def _in_place(
    c: Convolution, extents: _Extents, block: Cut, at: tuple[TirExpr, TirExpr]
) -> _Planes | None:
    """The planes of data at a batch and a group, if 1×1 windows read all of them."""
    batch, group = at
    size = extents.lines * extents.positions
    is_whole = all(w.before == 0 and w.extent == w.position.extent for w in c.windows)
    if extents.taps > 1 or not is_whole or size % SETS == 0:
        return None
    corner = Source.of(c).at(batch, (block.start, ZERO), group * extents.channels)
    return _Planes(corner, size)


def _copied(
    c: Convolution, extents: _Extents, block: Cut, at: tuple[TirExpr, TirExpr], names: Names
) -> _Planes:
    """A band of the lines of a `block` at a batch and a group."""
    shape = (extents.channels, block.size + extents.reach, extents.width)
    band = Buffer(names.fresh("band"), shape, "float32")
    copy = _fill(c, band, block, at, names)
    return _Planes(band[ZERO, ZERO, ZERO], shape[1] * shape[2], (copy,), (band,))


def _multiply(
    c: Convolution,
    extents: _Extents,
    weight: BufferLoad,
    planes: _Planes,
    tile: Buffer,
    block: Cut,
) -> Stmt:
    """The product of the `weight` of a group with the `planes` that it reads, in a `tile`."""
    down, across = c.windows
    steps = (planes.size, extents.width * down.dilation, across.dilation)
    over = (c.channels, down.size, across.size)
    if extents.taps == 1:  # a run of channels, not of taps
        steps, over = (planes.size,) * 3, (1, 1, c.channels)
    a_row, c_row = extents.channels * extents.taps, block.size * extents.width
    columns = block.count * extents.width - (extents.width - extents.positions)
    places = tuple((p.buffer, p.indices) for p in (weight, planes.corner, tile[(ZERO,) * 3]))
    strides = map(from_dim, (a_row, *steps, c_row))
    sizes = (from_dim(c.features), columns, *map(from_dim, over))
    return TensorIntrinsic("plane_tile", places, (*strides, *sizes))


def _fill(
    c: Convolution, band: Buffer, block: Cut, at: tuple[TirExpr, TirExpr], names: Names
) -> Stmt:
    """Copy the lines of a batch and a group, with zeros in the padding."""
    down, across = c.windows
    channels, lines, width = band.shape
    assert isinstance(width, int)
    assert isinstance(across.extent, int)
    k, y, x = names.var("c"), names.var("y"), names.var("x")
    batch, group = at
    first = down.seen(block.start, ZERO)
    element = Source.of(c).at(batch, (first + y, x), group * from_dim(channels) + k)

    def run(begin: int, end: int, value: TirExpr) -> list[Stmt]:
        part = along(x, from_dim(end - begin), store(band[k, y, x + begin], value))
        return [part] if begin < end else []

    begin, end = min(across.before, width), min(across.before + across.extent, width)
    parts = (*run(0, begin, FLOAT_ZERO), *run(begin, end, element), *run(end, width, FLOAT_ZERO))
    inside = within([(first + y, down.extent)])
    line = IfThenElse(inside, seq(*parts), *run(0, width, FLOAT_ZERO))
    count = block.count + (from_dim(lines) - block.size)
    return serial([(k, from_dim(channels)), (y, count)], line)
