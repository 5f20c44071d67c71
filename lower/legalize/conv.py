"""Convolutions and their transposes: one reduction over channels and the taps of the window.

The data that taps see is laid out first, so that no condition on an index and no division stands
inside of the reduction: with zeros around it, or for a transposed one spread as its strides say.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from relax_egraph.errors import NotLowerable
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.ops.convolution import Convolution, convolution
from relax_egraph.ir.ops.window import canonical, laid_out
from relax_egraph.lower.legalize.binary import multiply_scalars
from relax_egraph.lower.legalize.elementwise import Legalize
from relax_egraph.lower.legalize.window import Place, all_of, any_read, element, place
from relax_egraph.tir import te
from relax_egraph.tir.expr import TirExpr, TirVar, from_dim
from relax_egraph.tir.tensor import Reduction


def _conv(name: str, rank: int, data: te.Tensor, weight: te.Tensor, **attrs: Any) -> te.Tensor:
    how = convolution(f"R.nn.{name}", rank, **attrs)
    _, channels, *extents = canonical(data.shape, how.data)
    o, i, *sizes = canonical(weight.shape, how.kernel)
    needed, split, out_channels = how.channels(channels, o, i)
    if not dims.equal(channels, needed) or not dims.divides(how.groups, split):
        raise NotLowerable("whether the channels fit together is known only at run time")
    dtype = how.out_dtype or data.dtype
    in_group = from_dim(dims.floordiv(channels, how.groups))
    out_group = from_dim(dims.floordiv(out_channels, how.groups))
    read = dims.mul(dims.floordiv(channels, how.groups), _something(how, extents, sizes))
    c = te.reduce_axis(read, "c")
    taps = [te.reduce_axis(size, f"r{k}") for k, size in enumerate(sizes)]
    x = _spread(how, data, sizes) if how.transposed else _padded(how, data)
    there = _there(how, extents, sizes) if how.transposed else None

    def value(*at: TirVar) -> Reduction:
        batch, feature, *positions = canonical(at, how.out)
        group = feature // out_group if how.groups > 1 else te.const(0, "int64")
        channel = group * in_group + c
        windows = enumerate(zip(positions, taps, sizes, strict=True))
        places = [_seen(how, k, position, tap, size) for k, (position, tap, size) in windows]
        item = te.cast(x[laid_out((batch, channel, *places), how.data)], dtype)
        if there is None:
            w = weight[laid_out((feature, c, *taps), how.kernel)]
            return te.sum(multiply_scalars(item, te.cast(w, dtype)), [c, *taps])
        w = weight[laid_out((feature - group * out_group, channel, *taps), how.kernel)]
        product = multiply_scalars(item, te.cast(w, dtype))
        return te.sum(te.select(there[tuple(places)], product, 0), [c, *taps])

    return te.compute(how.shape(data.shape, weight.shape), value, name)


def _something(how: Convolution, extents: Sequence[Dim], sizes: Sequence[Dim]) -> Dim:
    """0 if data is empty along an axis along which the result is perhaps not, else 1."""
    return any_read(
        extent
        for k, (extent, size) in enumerate(zip(extents, sizes, strict=True))
        if not dims.prove_ge(0, how.extent(k, 0, size))
    )


def _seen(how: Convolution, k: int, position: TirExpr, tap: TirExpr, size: Dim) -> TirExpr:
    """Where along spatial axis `k` of the data laid out a tap of the window at `position` is."""
    if how.transposed:
        return position + (from_dim(dims.sub(size, 1)) - tap) * how.windows.dilation[k]
    return position * how.windows.strides[k] + tap * how.windows.dilation[k]


def _padded(how: Convolution, data: te.Tensor) -> te.Tensor:
    """`data` with zeros around it."""
    _, _, *extents = canonical(data.shape, how.data)
    move = how.windows
    if not any((*move.before, *move.after)):
        return data

    def source(*positions: TirExpr) -> list[Place]:
        return [
            place(p - before, extent, below=before > 0, above=after > 0)
            for p, extent, before, after in zip(
                positions, extents, move.before, move.after, strict=True
            )
        ]

    spatial = [move.padded(k, extent) for k, extent in enumerate(extents)]
    return _laid_out(how, data, spatial, source, "padded")


def _spread(how: Convolution, data: te.Tensor, sizes: Sequence[Dim]) -> te.Tensor:
    """`data` with zeros in between and around it, so that a window moves over it in steps of 1."""
    _, _, *extents = canonical(data.shape, how.data)

    def source(*positions: TirExpr) -> list[Place]:
        return _ways(how, positions, extents, sizes)

    return _laid_out(how, data, _spread_extents(how, extents, sizes), source, "spread")


def _there(how: Convolution, extents: Sequence[Dim], sizes: Sequence[Dim]) -> te.Tensor:
    """Whether a place of what `_spread` makes is one of data: only that is multiplied."""

    def value(*positions: TirVar) -> TirExpr:
        places = _ways(how, positions, extents, sizes)
        return all_of([c for p in places for c in p.conditions])

    return te.compute(_spread_extents(how, extents, sizes), value, "there")


def _spread_extents(how: Convolution, extents: Sequence[Dim], sizes: Sequence[Dim]) -> list[Dim]:
    return [
        dims.add(how.extent(k, extent, size), dims.sub(how.windows.reach(k, size), 1))
        for k, (extent, size) in enumerate(zip(extents, sizes, strict=True))
    ]


def _ways(
    how: Convolution, positions: Sequence[TirExpr], extents: Sequence[Dim], sizes: Sequence[Dim]
) -> list[Place]:
    """The data that is spread to `positions`: there is some where the strides divide the way."""
    found: list[Place] = []
    for k, (position, extent, size) in enumerate(zip(positions, extents, sizes, strict=True)):
        stride = how.windows.strides[k]
        ahead = dims.sub(how.windows.before[k], dims.sub(how.windows.reach(k, size), 1))
        way = position + from_dim(ahead)
        at = place(way // stride, extent)
        divided = () if stride == 1 else (te.equal(way % stride, 0),)
        found.append(Place(at.index, (*at.conditions, *divided)))
    return found


def _laid_out(
    how: Convolution,
    data: te.Tensor,
    spatial: Sequence[Dim],
    source: Callable[..., list[Place]],
    name: str,
) -> te.Tensor:
    """The element of `data` at the `source` of each place, or 0.

    It has no channels where data is empty along a spatial axis, so that nothing is read then.
    """
    batch, channels, *extents = canonical(data.shape, how.data)
    shape = laid_out((batch, dims.mul(channels, any_read(extents)), *spatial), how.data)

    def value(*at: TirVar) -> TirExpr:
        b, channel, *positions = canonical(at, how.data)
        places = (Place(b), Place(channel), *source(*positions))
        return element(data, laid_out(places, how.data), 0)

    return te.compute(shape, value, name)


LEGALIZE: Mapping[str, Legalize] = {
    f"nn.{name}": partial(_conv, name, rank)
    for rank in (1, 2, 3)
    for name in (f"conv{rank}d", f"conv{rank}d_transpose")
}
