"""Copies of data with channels last and with its padding: all windows are inside of them."""

from collections.abc import Sequence
from dataclasses import replace

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.lower.schedule.conv.convolution import Convolution, Window
from relax_egraph.lower.schedule.conv.parts import (
    FLOAT_ZERO,
    Source,
    along,
    serial,
    store,
    turns,
    within,
)
from relax_egraph.lower.schedule.loops import parallel
from relax_egraph.lower.schedule.movement import nest
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.stages import Axis, Stage
from relax_egraph.tir.expr import Buffer, TirExpr, from_dim
from relax_egraph.tir.stmt import IfThenElse, Stmt, seq


def with_padding(c: Convolution, names: Names) -> tuple[Convolution, Source, Sequence[Stmt]]:
    """`c` as a convolution of a copy of its data, which is returned, and the nests that copy."""
    source = Source.of(c)
    windows = tuple(map(_without_padding, c.windows))
    channel = c.data.shape[c.places[1]]
    shape = (c.batch.extent, *(w.extent for w in windows), channel)
    copy = Buffer(names.fresh("last"), shape, "float32")
    extents = (c.batch.extent, *(w.extent for w in c.windows), channel)
    axes = tuple(Axis(names.var("i"), d) for d in extents)
    b, *moved, k = (a.var for a in axes)
    places = [p + _before(w) for p, w in zip(moved, c.windows, strict=True)]
    stage = Stage("channels_last", copy, axes, (b, *places, k), source.at(b, moved, k))
    rank = len(shape)
    padded = Source(copy, (0, rank - 1, *range(1, rank - 1)))
    nests = (nest(stage, names), _zeros(copy, c.windows, names))
    return replace(c, windows=windows), padded, nests if windows != c.windows else nests[:1]


def _before(w: Window) -> int:
    return max(0, w.before)


def _without_padding(w: Window) -> Window:
    """`w` on data with the padding of `w`, which is as long as all windows together at least."""
    before, reach = _before(w), (dims.sub(w.size, 1), dims.sub(w.position.extent, 1))
    last = dims.add(dims.mul(reach[0], w.dilation), dims.mul(reach[1], w.stride))
    seen = dims.add(dims.sub(last, w.before), 1 + before)
    extent = dims.maximum(dims.add(w.extent, before), seen)
    return replace(w, before=w.before - before, extent=extent)


def _zeros(copy: Buffer, windows: Sequence[Window], names: Names) -> Stmt:
    """The loops that store zeros around the data in `copy`, line by line."""
    batch, *lines, width, channels = copy.shape
    b, images = turns(batch, "b", names)
    axes = tuple(Axis(names.var("i"), d) for d in lines)
    x, k = names.var("x"), names.var("k")

    def run(first: Dim, end: Dim) -> Stmt:
        place = copy[(b, *(a.var for a in axes), from_dim(first) + x, k)]
        count = from_dim(dims.maximum(0, dims.sub(end, first)))
        return serial([(x, count)], along(k, from_dim(channels), store(place, FLOAT_ZERO)))

    *outer, across = windows
    left, right = _before(across), dims.add(_before(across), across.extent)
    sides = seq(run(0, left), run(right, width))
    if not outer:
        return parallel(images, sides)
    tested: list[tuple[TirExpr, Dim]] = [
        (a.var - _before(w), w.extent) for a, w in zip(axes, outer, strict=True)
    ]
    return parallel((*images, *axes), IfThenElse(within(tested), sides, run(0, width)))
