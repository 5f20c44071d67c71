"""Joined groups: groups of few features are multiplied as one, with zeros in the weight between.

A product of such a zero with an infinity or NaN is NaN, in results that do not depend on it.  A
tile with a NaN is therefore computed again, group by group.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.lower.schedule.conv.convolution import Convolution
from relax_egraph.lower.schedule.conv.parts import FLOAT_ZERO, Panels, Size, along, serial
from relax_egraph.lower.schedule.loops import ZERO
from relax_egraph.lower.schedule.names import Names
from relax_egraph.tir.expr import Binary, Buffer, BufferLoad, Imm, TirExpr, binary, from_dim
from relax_egraph.tir.stmt import IfThenElse, Stmt, Store, TensorIntrinsic, TirBlock, seq

LANES = 16
"""The features that joined groups should have: a vector of the widest."""

_ONE = Imm(1, "int64")


def joined(c: Convolution) -> Convolution:
    """`c` with groups of few features joined: their weight has zeros between groups."""
    if not isinstance(c.features, int) or not isinstance(c.groups, int) or c.features >= LANES:
        return c
    counts = (n for n in range(1, c.groups + 1) if c.groups % n == 0)
    count = next((n for n in counts if n * c.features >= LANES), c.groups)
    return replace(
        c,
        channels=dims.mul(c.channels, count),
        features=c.features * count,
        groups=c.groups // count,
        joined=count,
    )


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows of a tile: its first one `at` a tap and a channel, in steps from `row` to row.

    `channel` is the step from channel to channel.
    """

    at: Callable[[Sequence[TirExpr], TirExpr], BufferLoad]
    row: Dim
    channel: Dim


@dataclass(frozen=True, slots=True)
class Factors:
    """The weight of a tile `at` a tap and a channel, in steps of `channel` from one to the next."""

    at: Callable[[Sequence[TirExpr], TirExpr], BufferLoad]
    channel: Dim


def apart(
    c: Convolution,
    product: Stmt,
    windows: Windows,
    factors: Factors,
    tile: Buffer,
    size: Size,
    names: Names,
) -> Stmt:
    """The `product` of joined groups in `tile`, which has all features of one place adjacent.

    Where it has a NaN, the product of each group by itself takes its place.
    """
    if c.joined == 1:
        return product
    total, v = Buffer(names.fresh("total"), (1,), "float32", "local"), names.var("v")
    rows, _ = size
    sums = Store(total, (ZERO,), Binary("+", total[ZERO], tile[ZERO, v]))
    is_nan = Binary("!=", total[ZERO], total[ZERO])
    body = seq(
        product,
        Store(total, (ZERO,), FLOAT_ZERO),
        along(v, rows * from_dim(tile.shape[1]), sums),
        IfThenElse(is_nan, _by_group(c, windows, factors, tile, rows, names)),
    )
    return TirBlock("apart", (), body, allocs=(total,))


def _by_group(
    c: Convolution, windows: Windows, factors: Factors, tile: Buffer, rows: TirExpr, names: Names
) -> Stmt:
    """The product of each group by itself, tap after tap."""
    features = dims.floordiv(c.features, c.joined)
    channels = dims.floordiv(c.channels, c.joined)
    group, taps = names.var("g"), [names.var("k") for _ in c.taps]
    column, channel = group * from_dim(features), group * from_dim(channels)
    weight = factors.at(taps, channel)
    *before, first = weight.indices
    places = (
        windows.at(taps, channel),
        BufferLoad(weight.buffer, (*before, first + column)),
        tile[ZERO, column],
    )
    line = Panels.of(c).of_depth(c.depth).line
    strides = (windows.row, 0, windows.channel, factors.channel, line, tile.shape[1])
    adds = binary("min", 1, sum(taps, start=ZERO))
    sizes = (rows, from_dim(features), _ONE, from_dim(channels), _ONE, adds)
    scalars = (*map(from_dim, strides), *sizes)
    call = TensorIntrinsic("window_tile", tuple((p.buffer, p.indices) for p in places), scalars)
    loops = [(k, from_dim(d)) for k, d in zip(taps, c.taps, strict=True)]
    return serial([(group, from_dim(c.joined)), *loops], call)
