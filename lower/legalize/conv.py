"""Convolutions and their transposes: sums over channels and the taps of the window.

The data that the taps of a convolution see is laid out with zeros around it first, so that no
condition on an index stands inside of the reduction.  A transposed one of float32 is the sum of the
taps that reach a position, which schedules take apart; any other multiplies each element of data
with the whole window, which is a product of matrices, and adds up what reaches a position.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

from relax_egraph.errors import NotLowerable
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.dtypes import computed
from relax_egraph.ir.ops.convolution import Convolution, convolution
from relax_egraph.ir.ops.window import canonical, laid_out
from relax_egraph.lower.legalize.binary import multiply_scalars
from relax_egraph.lower.legalize.elementwise import Legalize
from relax_egraph.lower.legalize.window import Place, any_read, element, place, where
from relax_egraph.tir import te
from relax_egraph.tir.expr import TirExpr, TirVar, from_dim
from relax_egraph.tir.tensor import Reduction


def _conv(name: str, rank: int, data: te.Tensor, weight: te.Tensor, **attrs: Any) -> te.Tensor:
    how = convolution(f"R.nn.{name}", rank, **attrs)
    _, channels, *_ = canonical(data.shape, how.data)
    o, i, *_ = canonical(weight.shape, how.kernel)
    needed, split, _ = how.channels(channels, o, i)
    if not dims.equal(channels, needed) or not dims.divides(how.groups, split):
        raise NotLowerable("whether the channels fit together is known only at run time")
    if not how.transposed:
        return _direct(name, how, data, weight)
    is_plain = {data.dtype, weight.dtype, how.out_dtype or data.dtype} == {"float32"}
    if is_plain and how.groups == 1 and _has_few_phases(how, weight):
        return _gathered(name, how, data, weight)
    return _scattered(how, data, weight)


def _direct(name: str, how: Convolution, data: te.Tensor, weight: te.Tensor) -> te.Tensor:
    _, _, *extents = canonical(data.shape, how.data)
    features, in_group, *sizes = canonical(weight.shape, how.kernel)
    dtype = how.out_dtype or data.dtype
    out_group = from_dim(dims.floordiv(features, how.groups))
    c = te.reduce_axis(dims.mul(in_group, _something(how, extents, sizes)), "c")
    taps = [te.reduce_axis(size, f"r{k}") for k, size in enumerate(sizes)]
    x = _padded(how, data)

    def value(*at: TirVar) -> Reduction:
        batch, feature, *positions = canonical(at, how.out)
        group = feature // out_group if how.groups > 1 else te.const(0, "int64")
        moves = zip(positions, taps, how.windows.strides, how.windows.dilation, strict=True)
        places = [p * stride + tap * dilation for p, tap, stride, dilation in moves]
        seen = x[laid_out((batch, group * from_dim(in_group) + c, *places), how.data)]
        w = weight[laid_out((feature, c, *taps), how.kernel)]
        product = multiply_scalars(te.cast(seen, dtype), te.cast(w, dtype))
        return te.sum(product, [c, *taps])

    return te.compute(how.shape(data.shape, weight.shape), value, name)


def _something(how: Convolution, extents: Sequence[Dim], sizes: Sequence[Dim]) -> Dim:
    """0 if data is empty along an axis along which the result is perhaps not, else 1."""
    return any_read(
        extent
        for k, (extent, size) in enumerate(zip(extents, sizes, strict=True))
        if not dims.prove_ge(0, how.extent(k, 0, size))
    )


def _padded(how: Convolution, data: te.Tensor) -> te.Tensor:
    """`data` with zeros around it.

    It has no channels where data is empty along a spatial axis, so that nothing is read then.
    """
    batch, channels, *extents = canonical(data.shape, how.data)
    move = how.windows
    if not any((*move.before, *move.after)):
        return data
    spatial = [move.padded(k, extent) for k, extent in enumerate(extents)]
    shape = laid_out((batch, dims.mul(channels, any_read(extents)), *spatial), how.data)

    def value(*at: TirVar) -> TirExpr:
        b, channel, *positions = canonical(at, how.data)
        sides = zip(positions, extents, move.before, move.after, strict=True)
        places = [
            place(p - before, extent, below=before > 0, above=after > 0)
            for p, extent, before, after in sides
        ]
        return element(data, laid_out((Place(b), Place(channel), *places), how.data), 0)

    return te.compute(shape, value, "padded")


MOST_PHASES = 16
"""Of how many convolutions a transposed one may be made, one for each phase of the strides."""


def _has_few_phases(how: Convolution, weight: te.Tensor) -> bool:
    _, _, *sizes = canonical(weight.shape, how.kernel)
    return prod(how.windows.strides) <= MOST_PHASES and all(isinstance(d, int) for d in sizes)


def _gathered(name: str, how: Convolution, data: te.Tensor, weight: te.Tensor) -> te.Tensor:
    """Each position as the sum over the taps that reach it: a convolution of data spread out."""
    _, channels, *extents = canonical(data.shape, how.data)
    _, _, *sizes = canonical(weight.shape, how.kernel)
    c = te.reduce_axis(dims.mul(channels, any_read(extents)), "c")
    taps = [te.reduce_axis(size, f"r{k}") for k, size in enumerate(sizes)]

    def value(*at: TirVar) -> Reduction:
        batch, feature, *positions = canonical(at, how.out)
        places = _origins(how, positions, taps, extents)
        seen = element(data, laid_out((Place(batch), Place(c), *places), how.data), 0)
        w = weight[laid_out((feature, c, *taps), how.kernel)]
        return te.sum(multiply_scalars(seen, w), [c, *taps])

    return te.compute(how.shape(data.shape, weight.shape), value, name)


def _scattered(how: Convolution, data: te.Tensor, weight: te.Tensor) -> te.Tensor:
    batch, channels, *extents = canonical(data.shape, how.data)
    out_group, _, *sizes = canonical(weight.shape, how.kernel)
    dtype = how.out_dtype or data.dtype
    wide = computed(dtype)
    in_group = dims.floordiv(channels, how.groups)
    c = te.reduce_axis(in_group, "c")
    several = (how.groups,) if how.groups > 1 else ()

    def product(*at: TirVar) -> Reduction:
        (*group, b), positions, (*taps, o) = (
            at[:count],
            at[count : count + how.rank],
            at[-how.rank - 1 :],
        )
        channel = group[0] * from_dim(in_group) + c if group else c
        x = te.cast(data[laid_out((b, channel, *positions), how.data)], dtype)
        w = te.cast(weight[laid_out((o, channel, *taps), how.kernel)], dtype)
        return te.sum(te.cast(multiply_scalars(x, w), wide), c)

    count = len(several) + 1
    products = te.compute((*several, batch, *extents, *sizes, out_group), product, "products")
    _, features, *spatial = canonical(how.shape(data.shape, weight.shape), how.out)
    first, *others = sizes
    taps = [
        te.reduce_axis(size, f"r{k}")
        for k, size in enumerate((dims.mul(first, any_read(extents)), *others))
    ]

    def reaching(*at: TirVar) -> Reduction:
        b, *positions, feature = at
        group = (feature // from_dim(out_group),) if several else ()
        o = feature - group[0] * from_dim(out_group) if group else feature
        places = _origins(how, positions, taps, extents)
        indices = (*group, b, *(p.index for p in places), *taps, o)
        return te.sum(where(places, products[indices], 0), taps)

    total = te.compute((batch, *spatial, features), reaching, "total")

    def result(*at: TirVar) -> TirExpr:
        b, feature, *positions = canonical(at, how.out)
        return te.cast(total[(b, *positions, feature)], dtype)

    return te.compute(how.shape(data.shape, weight.shape), result, "transposed")


def _origins(
    how: Convolution, positions: Sequence[TirExpr], taps: Sequence[TirExpr], extents: Sequence[Dim]
) -> list[Place]:
    """The data of which these taps reach `positions`, where the strides divide the way."""
    found: list[Place] = []
    for k, (position, tap, extent) in enumerate(zip(positions, taps, extents, strict=True)):
        stride = how.windows.strides[k]
        way = position + how.windows.before[k] - tap * how.windows.dilation[k]
        at = place(way // stride, extent)
        divided = () if stride == 1 else (te.equal(way % stride, 0),)
        found.append(Place(at.index, (*at.conditions, *divided)))
    return found


LEGALIZE: Mapping[str, Legalize] = {
    f"nn.{name}": partial(_conv, name, rank)
    for rank in (1, 2, 3)
    for name in (f"conv{rank}d", f"conv{rank}d_transpose")
}
