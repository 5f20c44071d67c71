"""Bands: lines of data with their padding, copied so that windows are read unconditionally."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.lower.schedule.conv.convolution import Convolution, Window
from relax_egraph.lower.schedule.conv.parts import (
    FLOAT_ZERO,
    Source,
    along,
    let,
    serial,
    store,
    within,
)
from relax_egraph.lower.schedule.cut import Cut
from relax_egraph.lower.schedule.loops import ZERO
from relax_egraph.lower.schedule.names import Names
from relax_egraph.tir.expr import Buffer, TirExpr, TirVar, as_expr, from_dim
from relax_egraph.tir.stmt import IfThenElse, Stmt, seq

BAND = 64 * 1024
"""The approximate floats of a band: 256 KiB."""

MOST_LINES = 8
"""The maximal lines of the result that share a band; with more, threads would share too few."""

UNKNOWN_LINES = 4
"""The same if the size of a line is known only at run time."""


def smallest(c: Convolution) -> Dim:
    """The floats of a band for one line of the result."""
    *outer, down, _ = c.windows
    planes = dims.product(w.size for w in outer)
    return dims.mul(planes, dims.mul(_span(down, 1), _line(c)))


def _line(c: Convolution) -> Dim:
    across = c.windows[-1]
    return dims.mul(_span(across, across.position.extent), dims.mul(c.groups, c.channels))


def lines_of_block(c: Convolution) -> int:
    """The lines of the result for one band; parts of equal size if the lines are constant."""
    down = c.windows[-2]
    most, lines, line, reach = UNKNOWN_LINES, down.position.extent, _line(c), _span(down, 1)
    if isinstance(line, int) and isinstance(reach, int) and line > 0:
        most = min(MOST_LINES, max(1, 1 + (BAND // line - reach) // down.stride))
    if not isinstance(lines, int) or lines <= 0:
        return most
    return -(-lines // -(-lines // most))


def _span(w: Window, count: Dim) -> Dim:
    """The places that `count` adjacent windows span."""
    reach = dims.add(dims.mul(dims.sub(w.size, 1), w.dilation), 1)
    return dims.maximum(0, dims.add(dims.mul(dims.sub(count, 1), w.stride), reach))


@dataclass(frozen=True, slots=True)
class Band:
    """The data under the windows of a `block` of lines, as ``[*taps, line, place, channel]``.

    It belongs to the image `batch`, and to `windows` at `outer` positions along all axes but the
    last two, whose taps are separate.  If the places of a channel are adjacent in data, so are they
    in the band: ``[*taps, line, channel, place]``.
    """

    source: Source
    windows: tuple[Window, ...]
    batch: TirExpr
    outer: tuple[TirExpr, ...]
    block: Cut
    buffer: Buffer

    @classmethod
    def of(
        cls,
        c: Convolution,
        source: Source,
        at: tuple[TirExpr, Sequence[TirExpr]],
        block: Cut,
        names: Names,
    ) -> "Band":
        """The band of `c` for the batch and the outer positions `at`."""
        *outer, down, across = c.windows
        width = _span(across, across.position.extent)
        lines, channels = _span(down, block.size), dims.mul(c.groups, c.channels)
        line = (width, channels) if source.channels_last else (channels, width)
        shape = (*(w.size for w in outer), lines, *line)
        buffer = Buffer(names.fresh("band"), shape, "float32")
        batch, places = at
        return cls(source, c.windows, batch, tuple(places), block, buffer)

    def fill(self, names: Names) -> Stmt:
        """Copy the lines, with zeros in the padding."""
        *outer, down, _ = self.windows
        taps, r, y = [names.var("k") for _ in outer], names.var("r"), names.var("y")
        above = [w.seen(at, k) for w, at, k in zip(outer, self.outer, taps, strict=True)]
        full, empty = self._line((*taps, r), (*above, y), names)
        tested = [(at, w.extent) for at, w in zip((*above, y), (*outer, down), strict=True)]
        begin = down.seen(self.block.start, ZERO)
        body = let([y], [begin + r], IfThenElse(within(tested), full, empty))
        reach = _span(down, 1)
        count = (self.block.count - 1) * down.stride + from_dim(reach)
        loops = [(k, from_dim(w.size)) for k, w in zip(taps, outer, strict=True)]
        return serial([*loops, (r, count)], body)

    def _line(
        self, line: Sequence[TirExpr], at: Sequence[TirExpr], names: Names
    ) -> tuple[Stmt, Stmt]:
        """A `line` of the band copied from data `at`, and one that is all padding."""
        across, (*_, outer, inner) = self.windows[-1], self.buffer.shape
        width, channels = (outer, inner) if self.source.channels_last else (inner, outer)
        left, skipped = max(0, across.before), max(0, -across.before)
        begin = dims.minimum(left, width)
        rest = dims.minimum(dims.sub(across.extent, skipped), dims.sub(width, begin))
        count = dims.maximum(0, rest)
        end = dims.add(begin, count)
        channel = names.var("c")

        def run(begin: Dim, count: Dim, value: Callable[[TirVar], TirExpr]) -> list[Stmt]:
            if count == 0:
                return []
            v = names.var("v")
            if self.source.channels_last:
                place = self.buffer[(*line, from_dim(begin), v)]
                return [along(v, from_dim(dims.mul(count, channels)), store(place, value(v)))]
            place = self.buffer[(*line, channel, from_dim(begin) + v)]
            return [along(v, from_dim(count), store(place, value(v)))]

        def element(v: TirVar) -> TirExpr:
            if self.source.channels_last:
                return self.source.at(self.batch, (*at, as_expr(skipped)), v)
            return self.source.at(self.batch, (*at, skipped + v), channel)

        def zero(_: TirVar) -> TirExpr:
            return FLOAT_ZERO

        def all_channels(*parts: Stmt) -> Stmt:
            if self.source.channels_last:
                return seq(*parts)
            return serial([(channel, from_dim(channels))], seq(*parts))

        parts = (
            *run(0, begin, zero),
            *run(begin, count, element),
            *run(end, dims.sub(width, end), zero),
        )
        return all_channels(*parts), all_channels(*run(0, width, zero))
