"""Convolutions and their transposes: one reduction over channels and the taps of the window.

A transposed one gathers: the taps of a position are those whose way to it the strides divide.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from relax_egraph.errors import NotLowerable
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.ops.convolution import Convolution, convolution
from relax_egraph.ir.ops.window import canonical, laid_out
from relax_egraph.lower.legalize.binary import multiply_scalars
from relax_egraph.lower.legalize.elementwise import Legalize
from relax_egraph.lower.legalize.window import Place, any_read, element, place, where
from relax_egraph.tir import te
from relax_egraph.tir.expr import TirExpr, TirVar, from_dim
from relax_egraph.tir.tensor import Reduction

Seen: TypeAlias = Callable[[Convolution, int, TirExpr, TirExpr, Dim], Place]
"""Where along a spatial axis of an extent the data is that a tap multiplies, for a position."""


def _conv(
    name: str, rank: int, seen: Seen, data: te.Tensor, weight: te.Tensor, **attrs: Any
) -> te.Tensor:
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

    def value(*at: TirVar) -> Reduction:
        batch, feature, *positions = canonical(at, how.out)
        group = feature // out_group if how.groups > 1 else te.const(0, "int64")
        channel = group * in_group + c
        places = [
            seen(how, k, position, tap, extent)
            for k, (position, tap, extent) in enumerate(zip(positions, taps, extents, strict=True))
        ]
        source = laid_out((Place(batch), Place(channel), *places), how.data)
        if how.transposed:
            w = weight[laid_out((feature - group * out_group, channel, *taps), how.kernel)]
            x = data[tuple(p.index for p in source)]
            product = multiply_scalars(te.cast(x, dtype), te.cast(w, dtype))
            return te.sum(where(source, product, 0), [c, *taps])
        w = weight[laid_out((feature, c, *taps), how.kernel)]
        x = element(data, source, 0)
        return te.sum(multiply_scalars(te.cast(x, dtype), te.cast(w, dtype)), [c, *taps])

    return te.compute(how.shape(data.shape, weight.shape), value, name)


def _something(how: Convolution, extents: Sequence[Dim], sizes: Sequence[Dim]) -> Dim:
    """0 if data is empty along an axis along which the result is perhaps not, else 1."""
    return any_read(
        extent
        for k, (extent, size) in enumerate(zip(extents, sizes, strict=True))
        if not dims.prove_ge(0, how.extent(k, 0, size))
    )


def _gathered(how: Convolution, k: int, position: TirExpr, tap: TirExpr, extent: Dim) -> Place:
    move = how.windows
    index = position * move.strides[k] + tap * move.dilation[k] - move.before[k]
    return place(index, extent, below=move.before[k] > 0, above=move.after[k] > 0)


def _spread(how: Convolution, k: int, position: TirExpr, tap: TirExpr, extent: Dim) -> Place:
    """The data that a tap puts at `position`: there is some where the stride divides the way."""
    move = how.windows
    way = position + move.before[k] - tap * move.dilation[k]
    stride = move.strides[k]
    found = place(way // stride, extent)
    if stride == 1:
        return found
    return Place(found.index, (*found.conditions, te.equal(way % stride, 0)))


LEGALIZE: Mapping[str, Legalize] = {
    **{f"nn.conv{r}d": partial(_conv, f"conv{r}d", r, _gathered) for r in (1, 2, 3)},
    **{
        f"nn.conv{r}d_transpose": partial(_conv, f"conv{r}d_transpose", r, _spread)
        for r in (1, 2, 3)
    },
}
