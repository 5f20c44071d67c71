"""Weights in the order in which products read them.

A weight that is a constant is packed once, element by element; one that a program computes, or is
called with, at each call.  Most of these have the elements of a feature in one run, and are
transposed in blocks that fit the first-level cache; an element at a time would read a cache line
for each.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.lower.schedule.conv.convolution import Convolution
from relax_egraph.lower.schedule.conv.parts import (
    Panels,
    along,
    serial,
    store,
    transpose,
    turns,
)
from relax_egraph.lower.schedule.cut import cut
from relax_egraph.lower.schedule.index import steps
from relax_egraph.lower.schedule.loops import ZERO, around, parallel
from relax_egraph.lower.schedule.names import Names
from relax_egraph.tir.expr import Buffer, BufferLoad, TirExpr, TirVar, from_dim
from relax_egraph.tir.stmt import Stmt, TirBlock, seq

CHANNELS = 16
"""The most channels that are transposed at once; with 3×3 taps these are 36 KiB."""

SCRATCH = 16 * 9 * 64
"""The floats of a block between its two moves."""

NARROWEST = 16
"""The fewest features of a strip that are worth a transposition."""


@dataclass(frozen=True, slots=True)
class _Packing:
    """The weight of `c` as ``[group, panel, strip, *inner, feature]``.

    `inner` are the variables of the taps and the channel, in the order of the packed weight.
    """

    c: Convolution
    panels: Panels
    weight: Buffer
    taps: Sequence[TirVar]
    channel: TirVar
    inner: Sequence[TirVar]
    group: TirExpr
    panel: TirExpr


def packed(
    c: Convolution, names: Names, *, in_blocks: bool = False, as_planes: bool = False
) -> tuple[Buffer, Stmt]:
    """The weight as ``[group, panel, strip, *taps, channel, feature]``, and loops that pack it.

    For data read `as_planes`, one plane for each channel, the channel precedes the last tap.  Loops
    `in_blocks` call a micro-kernel, which those that run once, for a constant, may not.
    """
    panels = Panels.of(c)
    taps, channel = [names.var("k") for _ in c.taps], names.var("c")
    inner, extents = [*taps, channel], [*c.taps, c.channels]
    if as_planes:
        inner, extents = [*taps[:-1], channel, taps[-1]], [*c.taps[:-1], c.channels, c.taps[-1]]
    shape = (c.groups, panels.count, panels.strips, *extents, panels.strip)
    weight = Buffer(names.fresh("packed"), shape, "float32")
    g, groups = turns(c.groups, "g", names)
    p, across = turns(panels.count, "p", names)
    packing = _Packing(c, panels, weight, taps, channel, inner, g, p)
    feature_step = _step_of_runs(c) if in_blocks else None
    if feature_step is None or panels.strip < NARROWEST:
        body = _by_elements(packing, dict(zip(inner, extents, strict=True)), names)
    else:
        body = _by_blocks(packing, feature_step, names)
    return weight, parallel((*groups, *across), body)


def _by_elements(packing: _Packing, extents: dict[TirVar, Dim], names: Names) -> Stmt:
    def row(s: TirExpr, j: TirVar, feature: TirExpr) -> Stmt:
        c, at = packing.c, (packing.group, packing.panel, s, *packing.inner, j)
        feature = packing.group * from_dim(c.features) + feature
        element = c.weight_at(feature, packing.channel, packing.taps)
        return store(packing.weight[at], element)

    fill = packing.panels.fill(packing.panel, row, names)
    return serial([(var, from_dim(extent)) for var, extent in extents.items()], fill)


def _by_blocks(packing: _Packing, feature_step: Dim, names: Names) -> Stmt:
    """Blocks of some channels are transposed, then the rows of each tap moved to their places."""
    c, panels, weight = packing.c, packing.panels, packing.weight
    count = dims.product(c.taps)
    assert isinstance(count, int)
    channels = max(1, min(CHANNELS, SCRATCH // (count * panels.strip)))
    block = cut(c.channels, channels, "co", names)
    turned = Buffer(names.fresh("turned"), (channels, *c.taps, panels.strip), "float32", "local")
    within, j, no_taps = names.var("ci"), names.var("j"), [ZERO for _ in c.taps]

    def strip(s: TirExpr, first: TirExpr, columns: TirExpr) -> Stmt:
        feature = packing.group * from_dim(c.features) + first
        source = c.weight_at(feature, block.start, no_taps)
        assert isinstance(source, BufferLoad)
        size = (columns, block.count * count)
        turn = transpose(source, turned[(ZERO, *no_taps, ZERO)], (feature_step, panels.strip), size)
        order = [block.start + within if v is packing.channel else v for v in packing.inner]
        place = weight[(packing.group, packing.panel, s, *order, j)]
        move = along(j, columns, store(place, turned[(within, *packing.taps, j)]))
        taps = [(tap, from_dim(extent)) for tap, extent in zip(packing.taps, c.taps, strict=True)]
        moves = serial([*taps, (within, block.count)], move)
        body = TirBlock("turned", (), seq(turn, moves), allocs=(turned,))
        return around(block.blocks, body)

    return panels.each_strip(packing.panel, strip, names)


def _step_of_runs(c: Convolution) -> Dim | None:
    """The distance of features, if all elements of each are one run: channel by channel."""
    if c.joined > 1:
        return None
    taps = [w.tap for w in c.windows if w.tap is not None]
    moves = steps(c.weight.buffer, c.weight.indices, [c.feature.var, c.channel, *taps])
    if moves is None:
        return None
    feature, *within = moves
    run = [c.channels, *(w.size for w in c.windows if w.tap is not None)]
    expected = [dims.product(run[k + 1 :]) for k in range(len(run))]
    is_known = all(isinstance(extent, int) for extent in run[1:])
    return feature if is_known and within == expected else None
