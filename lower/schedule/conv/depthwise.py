"""Convolutions of each channel by itself: no product of matrices, but a stream of channels."""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.lower.schedule.conv.convolution import Convolution, Window
from relax_egraph.lower.schedule.conv.parts import (
    NOTHING,
    Source,
    along,
    let,
    serial,
    store,
    turns,
    within,
)
from relax_egraph.lower.schedule.conv.results import Results
from relax_egraph.lower.schedule.epilogue import Point
from relax_egraph.lower.schedule.loops import ZERO, parallel
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.stages import Axis
from relax_egraph.tir.expr import Buffer, Scope, TirExpr, TirVar, as_expr, from_dim
from relax_egraph.tir.stmt import IfThenElse, Stmt, TirBlock, seq

FEWEST_INSIDE = 0.7
"""The share of windows that see nothing but data, below which those at edges take too long."""

_Element = Callable[[Sequence[TirExpr], TirVar], TirExpr]

MOST_TAPS = 64
"""How many products the expression of an element may be the sum of."""


def is_depthwise(c: Convolution) -> bool:
    """Whether each feature is made of a channel of its own."""
    return c.channels == 1 and c.features == 1


def by_taps(c: Convolution, names: Names) -> tuple[Buffer, Stmt]:
    """The weight as ``[*taps, feature]``, and what makes it."""
    made = Buffer(names.fresh("weights"), (*c.taps, c.groups), "float32")
    taps, f = [names.var("k") for _ in c.taps], names.var("f")
    fill = along(f, from_dim(c.groups), store(made[(*taps, f)], c.weight_at(f, ZERO, taps)))
    return made, serial([(k, from_dim(d)) for k, d in zip(taps, c.taps, strict=True)], fill)


def padded(c: Convolution, source: Source, names: Names) -> tuple[Convolution, Source, Stmt]:
    """`c` of a copy of its data with the zeros around that its windows see, and the copy."""
    windows = [
        replace(w, before=0, extent=dims.add(dims.mul(w.stride, dims.sub(w.position.extent, 1)), r))
        for w, r in zip(c.windows, map(_reach, c.windows), strict=True)
    ]
    shape = (c.batch.extent, *(w.extent for w in windows), c.groups)
    copy = Buffer(names.fresh("padded"), shape, "float32")
    axes = [Axis(names.var("i"), d) for d in shape[:-1]]
    b, *places = (a.var for a in axes)
    seen, extent = [names.var("y") for _ in windows], from_dim(c.groups)
    f, g = names.var("f"), names.var("f")
    inside = along(f, extent, store(copy[(b, *places, f)], source.at(b, seen, f)))
    outside = along(g, extent, store(copy[(b, *places, g)], NOTHING))
    tested = [(y, w.extent) for y, w in zip(seen, c.windows, strict=True)]
    begins = [place - w.before for place, w in zip(places, c.windows, strict=True)]
    *lines, last = axes
    body = let(seen, begins, IfThenElse(within(tested), inside, outside))
    body = parallel(lines, serial([(last.var, from_dim(last.extent))], body))
    last_place = len(shape) - 1
    return (
        replace(c, data=copy, windows=tuple(windows)),
        Source(copy, (0, last_place, *range(1, last_place))),
        body,
    )


def has_many_edges(c: Convolution) -> bool:
    """Whether so many windows see beyond data that it is worth a copy with padding."""
    inside = 1.0
    for w in c.windows:
        reach, positions = _reach(w), w.position.extent
        if not isinstance(reach, int) or not isinstance(positions, int) or positions < 1:
            return False
        if not isinstance(w.extent, int):
            return False
        first = -(-w.before // w.stride)
        last = (w.extent - reach + w.before) // w.stride
        inside *= max(0, min(last, positions - 1) - max(first, 0) + 1) / positions
    return inside < FEWEST_INSIDE


def _reach(w: Window) -> Dim:
    """How many places a window spans."""
    return dims.add(dims.mul(w.dilation, dims.sub(w.size, 1)), 1)


def by_channels(
    c: Convolution, source: Source, weight: Buffer, results: Results, names: Names
) -> Stmt:
    """The convolution of data with channels last, line by line, and a weight `by_taps`."""
    b, batch = turns(c.batch.extent, "b", names)
    *outer, last = c.positions
    lines, values = names.renamed(outer, "i")
    column, places = names.var("q"), [names.var("y") for _ in c.windows]
    positions = [values[a.var] for a in outer] + [column]
    begins = [w.seen(p, ZERO) for w, p in zip(c.windows, positions, strict=True)]
    window = _Window(c, source, weight, b, places, names)

    def point(row: TirExpr, feature: TirExpr) -> Point:
        return {**values, c.batch.var: b, last.var: row, c.feature.var: feature}

    def over_line(stores: Callable[[TirExpr, TirVar], Stmt]) -> Stmt:
        return serial([(column, from_dim(last.extent))], let(places, begins, window.sums(stores)))

    if results.features_last:
        body = over_line(lambda element, f: results.of(element, point(column, f)))
    else:
        line = Buffer(names.fresh("line"), (last.extent, c.groups), "float32")
        fill = over_line(lambda element, f: store(line[column, f], element))
        size = (from_dim(last.extent), from_dim(c.groups))
        stores = results.of_tile(line[ZERO, ZERO], size, point, names)
        body = TirBlock("line", (), seq(fill, stores), allocs=(line,))
    return parallel((*batch, *lines), body)


@dataclass(frozen=True, slots=True)
class _Window:
    """The window that begins at `begins`, of all channels."""

    c: Convolution
    source: Source
    weight: Buffer
    batch: TirExpr
    begins: Sequence[TirVar]
    names: Names

    def sums(self, stores: Callable[[TirExpr, TirVar], Stmt]) -> Stmt:
        """`stores` of the sum for each channel; what is at an edge is copied first, with zeros."""
        patch = Buffer(self.names.fresh("patch"), (*self.c.taps, self.c.groups), "float32")
        at_edge = self._stored(lambda taps, f: patch[(*taps, f)], stores)
        at_edge = TirBlock("edge", (), seq(self._copied(patch), at_edge), allocs=(patch,))
        corners = [
            (begin, dims.add(dims.sub(w.extent, _reach(w)), 1))
            for begin, w in zip(self.begins, self.c.windows, strict=True)
        ]
        return IfThenElse(within(corners), self._stored(self._element, stores), at_edge)

    def _copied(self, patch: Buffer) -> Stmt:
        """What the window sees, in `patch`."""
        f, taps = self.names.var("f"), [self.names.var("k") for _ in self.c.taps]
        inside = along(f, self.extent, store(patch[(*taps, f)], self._element(taps, f)))
        f = self.names.var("f")
        outside = along(f, self.extent, store(patch[(*taps, f)], NOTHING))
        places = zip(self._places(taps), self.c.windows, strict=True)
        body = IfThenElse(within([(at, w.extent) for at, w in places]), inside, outside)
        return serial(self._loops(taps), body)

    def _stored(self, element: _Element, stores: Callable[[TirExpr, TirVar], Stmt]) -> Stmt:
        """`stores` of the sums of elements and weights: one expression, unless that is long."""
        count, f = dims.product(self.c.taps), self.names.var("f")

        def term(taps: Sequence[TirExpr], f: TirVar) -> TirExpr:
            return element(taps, f) * self.weight[(*taps, f)]

        if isinstance(count, int) and 0 < count <= MOST_TAPS:
            every = product(*(range(d) for d in self.c.taps if isinstance(d, int)))
            terms = (term([as_expr(tap) for tap in taps], f) for taps in every)
            return along(f, self.extent, stores(reduce(operator.add, terms), f))
        scope: Scope = "local" if isinstance(self.c.groups, int) else "global"
        sums = Buffer(self.names.fresh("sums"), (self.c.groups,), "float32", scope)
        clear = along(f, self.extent, store(sums[f], NOTHING))
        f, taps = self.names.var("f"), [self.names.var("k") for _ in self.c.taps]
        add = along(f, self.extent, store(sums[f], sums[f] + term(taps, f)))
        f = self.names.var("f")
        out = along(f, self.extent, stores(sums[f], f))
        return TirBlock("sums", (), seq(clear, serial(self._loops(taps), add), out), allocs=(sums,))

    @property
    def extent(self) -> TirExpr:
        """How many channels there are."""
        return from_dim(self.c.groups)

    def _loops(self, taps: Sequence[TirVar]) -> list[tuple[TirVar, TirExpr]]:
        return [(k, from_dim(d)) for k, d in zip(taps, self.c.taps, strict=True)]

    def _places(self, taps: Sequence[TirExpr]) -> list[TirExpr]:
        windows = zip(self.begins, taps, self.c.windows, strict=True)
        return [begin + tap * w.dilation for begin, tap, w in windows]

    def _element(self, taps: Sequence[TirExpr], f: TirVar) -> TirExpr:
        return self.source.at(self.batch, self._places(taps), f)
