"""Transposed convolutions as plain ones: one for each phase of the stride.

On data dilated by a stride s, the results at ``y0, y0 + s, y0 + 2s, …`` use only the taps that fall
on data, and these are adjacent: a plain convolution of stride 1.  The zeros between elements of
data are never multiplied.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import gcd

from relax_egraph.ir import dims
from relax_egraph.lower.schedule.conv.bands import by_bands, is_faster
from relax_egraph.lower.schedule.conv.convolution import Convolution, Window
from relax_egraph.lower.schedule.conv.packing import packed
from relax_egraph.lower.schedule.conv.parts import Source, channels_last, unflatten
from relax_egraph.lower.schedule.conv.results import Results
from relax_egraph.lower.schedule.conv.rows import Target, by_rows, reads_planes
from relax_egraph.lower.schedule.epilogue import Point
from relax_egraph.lower.schedule.loops import ZERO, Collapse, store_loops
from relax_egraph.lower.schedule.movement import nest
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.stages import Axis
from relax_egraph.tir.expr import Buffer, BufferLoad, TirExpr, TirVar
from relax_egraph.tir.rewrite import substitute
from relax_egraph.tir.stmt import Stmt


@dataclass(frozen=True, slots=True)
class Phase:
    """A plain convolution, and the positions of its results in the whole result."""

    c: Convolution
    places: Point

    @property
    def footprint(self) -> tuple[object, ...]:
        """A key of the data it reads: phases of one key read the same data at each position."""
        return tuple(
            (w.position.extent, w.size, w.dilation, w.before, w.extent) for w in self.c.windows
        )


def phases(c: Convolution, names: Names) -> list[Phase]:
    """The phases of `c` that may have results."""
    result: list[Phase] = []
    for starts in product(*(range(w.up) for w in c.windows)):
        windows: list[Window] = []
        places: dict[TirVar, TirExpr] = {}
        taps: dict[TirVar, TirExpr] = {}
        for w, start in zip(c.windows, starts, strict=True):
            window, tap = _of_phase(w, start, names)
            windows.append(window)
            places[w.position.var] = window.position.var * w.up + start
            if w.tap is not None:
                taps[w.tap] = tap
        weight = BufferLoad(c.weight.buffer, tuple(substitute(i, taps) for i in c.weight.indices))
        if all(w.position.extent != 0 for w in windows):
            result.append(Phase(replace(c, windows=tuple(windows), weight=weight), places))
    return result


def _of_phase(w: Window, start: int, names: Names) -> tuple[Window, TirExpr]:
    """The window of the positions from `start` on, and the tap of `w` for each of its taps."""
    assert isinstance(w.size, int)
    dilation = -w.dilation
    first_tap = next((k for k in range(w.size) if (start - w.before - k * dilation) % w.up == 0), 0)
    every = w.up // gcd(w.up, dilation)
    reaches = (start - w.before - first_tap * dilation) % w.up == 0
    extent = dims.floordiv(dims.add(w.position.extent, w.up - 1 - start), w.up)
    position, tap = Axis(names.var("q"), extent), names.var("k")
    if not reaches:  # an empty window
        return Window(position, tap, 0, 1, 1, 0, w.extent), tap
    count = len(range(first_tap, w.size, every))
    last = first_tap + (count - 1) * every
    before = -((start - w.before - last * dilation) // w.up)
    window = Window(position, tap, count, 1, every * dilation // w.up, before, w.extent)
    return window, last - tap * every


def _by_footprint(plain: Sequence[Phase]) -> list[list[Phase]]:
    """The phases in groups that read the same data."""
    groups: dict[tuple[object, ...], list[Phase]] = {}
    for phase in plain:
        groups.setdefault(phase.footprint, []).append(phase)
    return list(groups.values())


def by_phases(c: Convolution, results: Results, names: Names) -> tuple[list[Stmt], list[Buffer]]:
    """A transposed convolution, and the buffers that it needs.

    If the features of results are not adjacent, they are computed with features last first, and the
    epilogue runs after that.
    """
    groups = _by_footprint(phases(c, names))
    nests: list[Stmt] = []
    after: list[Stmt] = []
    allocs: list[Buffer] = []
    source = Source.of(c)
    if not all(reads_planes(group[0].c) for group in groups):
        source, copy = channels_last(c, names)
        if copy is not None:
            nests.append(copy)
            allocs.append(source.buffer)
    target_results = results
    if not results.features_last:
        target_results, after = _features_last(c, results, names)
        allocs.append(target_results.stage.buffer)
    prepared: list[Stmt] = []
    for group in groups:
        leader = group[0].c
        merged, weights = _flattened(leader.positions), list[Buffer]()
        for phase in group:
            weight, prepare = packed(phase.c, names)
            weights.append(weight)
            prepared.append(prepare)
        allocs += weights
        if is_faster(leader):
            for phase, weight in zip(group, weights, strict=True):
                own = replace(target_results, values=phase.places)
                nests.append(by_bands(phase.c, source, weight, own, names))
            continue
        targets = [
            Target(weight, replace(target_results, values=_places(phase, merged.axes[0].var)))
            for phase, weight in zip(group, weights, strict=True)
        ]
        nests.append(by_rows(leader, source, targets, merged, names))
    return [*prepared, *nests, *after], allocs


def _features_last(c: Convolution, results: Results, names: Names) -> tuple[Results, list[Stmt]]:
    """Results in a buffer with features last, and the loops from it to the final results."""
    axes = (c.batch, *c.positions, c.feature)
    at = tuple(a.var for a in axes)
    buffer = Buffer(names.fresh("result"), tuple(a.extent for a in axes), "float32")
    after = [nest(replace(results.stage, value=BufferLoad(buffer, at)), names)]
    if results.rest:
        after.append(store_loops(results.rest, names, "parallel"))
    stage = replace(results.stage, buffer=buffer, indices=at)
    return replace(results, stage=stage, rest=(), is_output=True), after


def _flattened(axes: Sequence[Axis]) -> Collapse:
    """`axes` as a single one, which numbers their iterations and has the last variable."""
    *outer, last = axes
    whole = Axis(last.var, dims.product(a.extent for a in axes))
    return Collapse((whole,), {a.var: ZERO for a in outer})


def _places(phase: Phase, number: TirVar) -> Point:
    """The place in the whole result of the position with this number."""
    axes = phase.c.positions
    own = {a.var: at for a, at in zip(axes, unflatten(number, axes), strict=True)}
    return {v: substitute(place, own) for v, place in phase.places.items()}
