"""Depthwise convolutions: not a matrix product, but a stream of channels.

Several positions whose windows are inside data are summed at once.  Each of the others, at the ends
of a line, is summed over the taps that are inside, so nothing is copied.  The zeros of the padding
matter only for weights that are not finite, and are multiplied only then.  Data that is copied
anyway gets its padding, and all windows are inside.
"""

from dataclasses import dataclass

from relax_egraph.ir import dims
from relax_egraph.lower.intrinsics.sliding import TAPS, name_of
from relax_egraph.lower.schedule.conv.convolution import Convolution, Window
from relax_egraph.lower.schedule.conv.parts import (
    FLOAT_ZERO,
    Source,
    along,
    equal_parts,
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
    Imm,
    Not,
    Select,
    TirExpr,
    TirVar,
    as_expr,
    binary,
    from_dim,
)
from relax_egraph.tir.stmt import IfThenElse, Stmt, TensorIntrinsic, TirBlock, seq

MOST_POSITIONS = 96
"""The maximal positions that are computed at once."""

CHANNELS = 32
"""The channels that are computed at once: with their lines and weights they fit the first cache."""

MOST_LINES = 8
"""The maximal lines that one task computes."""


def is_depthwise(c: Convolution) -> bool:
    """Whether each feature depends on a single channel of its own."""
    return c.channels == 1 and c.features == 1


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights as ``[*taps, feature]``, and a number that is NaN unless all of them are finite.

    The number is ``None`` if no window reads outside of data.
    """

    taps: Buffer
    wild: Buffer | None

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """All buffers."""
        return (self.taps, self.wild) if self.wild else (self.taps,)


def by_taps(c: Convolution, names: Names, *, is_padded: bool) -> tuple[Weights, list[Stmt]]:
    """The weights of `c`, and the loops that prepare them."""
    weights = Buffer(names.fresh("weights"), (*c.taps, c.groups), "float32")
    taps, f = [names.var("k") for _ in c.taps], names.var("f")
    fill = along(f, from_dim(c.groups), store(weights[(*taps, f)], c.weight_at(f, ZERO, taps)))
    loops = [(k, from_dim(d)) for k, d in zip(taps, c.taps, strict=True)]
    if is_padded:
        return Weights(weights, None), [serial(loops, fill)]
    wild = Buffer(names.fresh("wild"), (1,), "float32")
    at = tuple(names.var("k") for _ in weights.shape)
    add = store(wild[0], wild[0] + weights[at] * 0.0)
    check = serial([(k, from_dim(d)) for k, d in zip(at, weights.shape, strict=True)], add)
    check = TirBlock("wild", (), seq(store(wild[0], FLOAT_ZERO), check))
    return Weights(weights, wild), [serial(loops, fill), check]


def by_channels(
    c: Convolution, source: Source, weights: Weights, results: Results, names: Names
) -> Stmt:
    """The convolution of data with channels last, line by line, with `weights`."""
    b, batch = turns(c.batch.extent, "b", names)
    *outer, row = c.positions
    planes, values = names.renamed(outer[:-1], "i")
    lines = cut(outer[-1].extent if outer else 1, MOST_LINES, "io", names)
    line = names.var("l")
    values |= {axis.var: lines.start + line for axis in outer[-1:]}
    channels = cut(c.groups, CHANNELS, "jo", names)
    piece = cut(row.extent, equal_parts(row.extent, MOST_POSITIONS), "io", names)
    tile = Buffer(names.fresh("tile"), (piece.size, channels.size), "float32", "local")

    def point(r: TirExpr, j: TirExpr) -> Point:
        at = {row.var: piece.start + r, c.feature.var: channels.start + j}
        return {**values, **at, c.batch.var: b}

    at = tuple(values[a.var] for a in outer)
    sums = _Line(c, source, weights, b, at, channels, tile, names).sums(piece)
    stores = results.of_tile(tile[ZERO, ZERO], (piece.count, channels.count), point, names)
    body: Stmt = TirBlock("tile", (), seq(sums, stores), allocs=(tile,))
    body = serial([(line, lines.count)], around(piece.blocks, body))
    return parallel((*batch, *planes, *lines.blocks, *channels.blocks), body)


@dataclass(frozen=True, slots=True)
class _Taps:
    """The taps of a window inside data: `count` from `first` on, of which `place` is the first."""

    first: TirExpr
    count: TirExpr
    place: TirExpr

    @classmethod
    def of(cls, w: Window, begin: TirExpr) -> "_Taps":
        """The taps of the window that begins at `begin`."""
        size, step = from_dim(w.size), w.dilation
        first = binary("min", size, _quotient(binary("max", 0, as_expr(0) - begin), step))
        end = binary("min", size, _quotient(binary("max", 0, from_dim(w.extent) - begin), step))
        return cls(first, binary("max", 0, end - first), begin + first * step)


def _quotient(a: TirExpr, b: int) -> TirExpr:
    """``⌈a / b⌉``."""
    return a if b == 1 else (a + (b - 1)) // b


_NO_WINDOW = Window(Axis(TirVar("q"), 1), None, 1, 1, 1, 0, 1)
"""The window along an absent axis."""


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of results at `outer` positions, for some `channels`, which is stored in `tile`."""

    c: Convolution
    source: Source
    weights: Weights
    batch: TirExpr
    outer: tuple[TirExpr, ...]
    channels: Cut
    tile: Buffer
    names: Names

    def sums(self, piece: Cut) -> Stmt:
        """The sums of a `piece` of the line: inner positions at once, the others one by one."""
        across, wild = self.c.windows[-1], self.weights.wild
        if wild is None:
            taps = _Taps(ZERO, from_dim(across.size), across.seen(piece.start, ZERO))
            return self._call(ZERO, piece.count, taps)
        first, end = _inside(across)
        names = left, right = [self.names.var(prefix) for prefix in ("left", "right")]
        begin = binary("max", 0, binary("min", piece.count, as_expr(first) - piece.start))
        values = begin, binary("max", begin, binary("min", piece.count, end - piece.start))
        inside = _Taps(ZERO, from_dim(across.size), across.seen(piece.start + left, ZERO))
        e, r = self.names.var("e"), self.names.var("r")
        place = Select(Binary("<", e, left), e, e + (right - left))
        edge = _Taps.of(across, across.seen(piece.start + r, ZERO))
        edges = let([r], [place], self._call(r, as_expr(1), edge))
        body = seq(
            self._call(left, right - left, inside),
            serial([(e, piece.count - (right - left))], edges),
        )
        is_wild = Binary("!=", wild[0], wild[0])
        return seq(let(names, values, body), IfThenElse(is_wild, self._outside(piece)))

    def _outside(self, piece: Cut) -> Stmt:
        """The zeros that the windows of a `piece` read outside data, times their weights."""
        r, j, taps = (
            self.names.var("r"),
            self.names.var("j"),
            [self.names.var("k") for _ in self.c.taps],
        )
        at = (*self.outer, piece.start + r)
        places = [
            (w.seen(p, k), w.extent) for w, p, k in zip(self.c.windows, at, taps, strict=True)
        ]
        zero = self.weights.taps[(*taps, self.channels.start + j)] * 0.0
        add = along(j, self.channels.count, store(self.tile[r, j], self.tile[r, j] + zero))
        over = [(k, from_dim(w.size)) for k, w in zip(taps, self.c.windows, strict=True)]
        outside = IfThenElse(Not(within(places)), add)
        return serial([(r, piece.count), *over], outside)

    def _call(self, row: TirExpr, rows: TirExpr, across: _Taps) -> Stmt:
        """The sums of `rows` positions from `row` on, over the taps `across` and all others.

        The taps of further axes are summed one after the other; those outside data have no lines.
        Windows with all their taps slide if they move on by one of them.
        """
        *outer, last = self.c.windows
        *above, down = [*outer] or [_NO_WINDOW]
        *begins, at = [w.seen(p, ZERO) for w, p in zip(outer, self.outer, strict=True)] or [ZERO]
        lines = _Taps.of(down, at)
        taps = [self.names.var("k") for _ in above]
        places = [y + k * w.dilation for y, k, w in zip(begins, taps, above, strict=True)]
        count = lines.count
        if above:
            tested = within([(y, w.extent) for y, w in zip(places, above, strict=True)])
            count = Select(tested, count, ZERO)
        place = (*places, lines.place, across.place) if outer else (across.place,)
        tap = (*taps, lines.first, across.first) if outer else (across.first,)
        start, width = self.channels.start, last.extent
        data = self.source.at(self.batch, place, start)
        weight, target = self.weights.taps[(*tap, start)], self.tile[row, ZERO]
        step = self.c.groups
        a_row, a_tap = dims.mul(last.stride, step), dims.mul(last.dilation, step)
        a_line, b_line = dims.mul(down.dilation, dims.mul(width, step)), dims.mul(last.size, step)
        buffers = tuple((load.buffer, load.indices) for load in (data, weight, target))
        is_whole = isinstance(across.count, Imm) and not above
        if is_whole and isinstance(last.size, int) and last.size in TAPS and a_row == a_tap:
            strides = (a_row, a_line, b_line, step, self.channels.size)
            size = (rows, self.channels.count, count)
            return TensorIntrinsic(name_of(last.size), buffers, (*map(from_dim, strides), *size))
        strides = (a_row, a_line, a_tap, b_line, step, self.channels.size)
        adds = binary("min", 1, sum(taps, start=ZERO))
        size = (rows, self.channels.count, count, across.count, adds)
        call = TensorIntrinsic("depthwise_tile", buffers, (*map(from_dim, strides), *size))
        return serial([(k, from_dim(w.size)) for k, w in zip(taps, above, strict=True)], call)


def _inside(w: Window) -> tuple[int, TirExpr]:
    """The first position whose window begins in data, and the end of those that end in data."""
    reach = from_dim(w.size) * w.dilation - (w.dilation - 1)
    room = from_dim(w.extent) + w.before - reach
    return max(0, -(-w.before // w.stride)), binary("max", 0, room + w.stride) // w.stride
