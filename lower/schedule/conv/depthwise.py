"""Convolutions of each channel by itself: no product of matrices, but a stream of channels."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

from relax_egraph.ir import dims
from relax_egraph.lower.schedule.conv.convolution import Convolution
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
from relax_egraph.tir.expr import Buffer, TirExpr, TirVar, as_expr, from_dim
from relax_egraph.tir.stmt import IfThenElse, Stmt, TirBlock, seq

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
        """`stores` of the sum for each channel: tap by tap where not all taps are in data."""
        count = dims.product(self.c.taps)
        at_edge = self._tap_by_tap(stores)
        if not isinstance(count, int) or not 0 < count <= MOST_TAPS:
            return at_edge
        f = self.names.var("f")
        total: TirExpr | None = None
        for taps in product(*(range(d) for d in self.c.taps if isinstance(d, int))):
            term = self._term([as_expr(tap) for tap in taps], f)
            total = term if total is None else total + term
        assert total is not None
        whole = along(f, from_dim(self.c.groups), stores(total, f))
        corners = [
            (begin, dims.sub(w.extent, dims.mul(w.dilation, dims.sub(w.size, 1))))
            for begin, w in zip(self.begins, self.c.windows, strict=True)
        ]
        return IfThenElse(within(corners), whole, at_edge)

    def _tap_by_tap(self, stores: Callable[[TirExpr, TirVar], Stmt]) -> Stmt:
        names, extent = self.names, from_dim(self.c.groups)
        is_small = isinstance(self.c.groups, int)
        sums = Buffer(
            names.fresh("sums"), (self.c.groups,), "float32", "local" if is_small else "global"
        )
        f = names.var("f")
        clear = along(f, extent, store(sums[f], NOTHING))
        f, taps = names.var("f"), [names.var("k") for _ in self.c.taps]
        add = along(f, extent, store(sums[f], sums[f] + self._term(taps, f)))
        # Zeros around data are multiplied as data is: by an infinite weight to NaN.
        zero = along(f, extent, store(sums[f], sums[f] + NOTHING * self.weight[(*taps, f)]))
        places = zip(self._seen(taps), self.c.windows, strict=True)
        body = IfThenElse(within([(at, w.extent) for at, w in places]), add, zero)
        loops = [(k, from_dim(d)) for k, d in zip(taps, self.c.taps, strict=True)]
        f = names.var("f")
        out = along(f, extent, stores(sums[f], f))
        return TirBlock("edge", (), seq(clear, serial(loops, body), out), allocs=(sums,))

    def _seen(self, taps: Sequence[TirExpr]) -> list[TirExpr]:
        windows = zip(self.begins, taps, self.c.windows, strict=True)
        return [begin + tap * w.dilation for begin, tap, w in windows]

    def _term(self, taps: Sequence[TirExpr], f: TirVar) -> TirExpr:
        return self.source.at(self.batch, self._seen(taps), f) * self.weight[(*taps, f)]
