"""Convolutions and transposed convolutions: sums over channels and window taps.

Direct convolutions first pad the data with zeros, so that the reduction has no conditions on
indices.  A transposed one of float32 is a sum over the taps that reach a position, which schedules
split into phases.  Other transposed ones multiply each element of data with the whole window, as a
matrix product, and add up the products that reach a position.
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
    spec = convolution(f"R.nn.{name}", rank, **attrs)
    _, channels, *_ = canonical(data.shape, spec.data)
    o, i, *_ = canonical(weight.shape, spec.kernel)
    needed, split, _ = spec.channels(channels, o, i)
    if not dims.equal(channels, needed) or not dims.divides(spec.groups, split):
        raise NotLowerable("whether the channels fit together is known only at run time")
    if not spec.transposed:
        return _direct(name, spec, data, weight)
    is_plain = {data.dtype, weight.dtype, spec.out_dtype or data.dtype} == {"float32"}
    if is_plain and spec.groups == 1 and _has_few_phases(spec, weight):
        return _gathered(name, spec, data, weight)
    return _scattered(spec, data, weight)


def _direct(name: str, spec: Convolution, data: te.Tensor, weight: te.Tensor) -> te.Tensor:
    _, _, *extents = canonical(data.shape, spec.data)
    features, in_group, *sizes = canonical(weight.shape, spec.kernel)
    dtype = spec.out_dtype or data.dtype
    out_group = from_dim(dims.floordiv(features, spec.groups))
    c = te.reduce_axis(dims.mul(in_group, _nonempty(spec, extents, sizes)), "c")
    taps = [te.reduce_axis(size, f"r{k}") for k, size in enumerate(sizes)]
    x = _padded(spec, data)

    def value(*at: TirVar) -> Reduction:
        batch, feature, *positions = canonical(at, spec.out)
        group = feature // out_group if spec.groups > 1 else te.const(0, "int64")
        moves = zip(positions, taps, spec.windows.strides, spec.windows.dilation, strict=True)
        places = [p * stride + tap * dilation for p, tap, stride, dilation in moves]
        x_value = x[laid_out((batch, group * from_dim(in_group) + c, *places), spec.data)]
        w = weight[laid_out((feature, c, *taps), spec.kernel)]
        product = multiply_scalars(te.cast(x_value, dtype), te.cast(w, dtype))
        return te.sum(product, [c, *taps])

    return te.compute(spec.shape(data.shape, weight.shape), value, name)


def _nonempty(spec: Convolution, extents: Sequence[Dim], sizes: Sequence[Dim]) -> Dim:
    """0 if data is empty along an axis where the result may not be, else 1."""
    return any_read(
        extent
        for k, (extent, size) in enumerate(zip(extents, sizes, strict=True))
        if not dims.prove_ge(0, spec.extent(k, 0, size))
    )


def _padded(spec: Convolution, data: te.Tensor) -> te.Tensor:
    """`data`, padded with zeros.

    The result has no channels if data is empty along a spatial axis, so that nothing is read.
    """
    batch, channels, *extents = canonical(data.shape, spec.data)
    move = spec.windows
    if not any((*move.before, *move.after)):
        return data
    spatial = [move.padded(k, extent) for k, extent in enumerate(extents)]
    shape = laid_out((batch, dims.mul(channels, any_read(extents)), *spatial), spec.data)

    def value(*at: TirVar) -> TirExpr:
        b, channel, *positions = canonical(at, spec.data)
        sides = zip(positions, extents, move.before, move.after, strict=True)
        places = [
            place(p - before, extent, below=before > 0, above=after > 0)
            for p, extent, before, after in sides
        ]
        return element(data, laid_out((Place(b), Place(channel), *places), spec.data), 0)

    return te.compute(shape, value, "padded")


MOST_PHASES = 16
"""The maximal number of phases of the strides: a transposed convolution is one for each."""


def _has_few_phases(spec: Convolution, weight: te.Tensor) -> bool:
    _, _, *sizes = canonical(weight.shape, spec.kernel)
    return prod(spec.windows.strides) <= MOST_PHASES and all(isinstance(d, int) for d in sizes)


def _gathered(name: str, spec: Convolution, data: te.Tensor, weight: te.Tensor) -> te.Tensor:
    """The sum over the taps that reach each position: a convolution of dilated data.

    A tap that does not reach the position adds 0, even if the weight there is infinite.
    """
    _, channels, *extents = canonical(data.shape, spec.data)
    _, _, *sizes = canonical(weight.shape, spec.kernel)
    c = te.reduce_axis(dims.mul(channels, any_read(extents)), "c")
    taps = [te.reduce_axis(size, f"r{k}") for k, size in enumerate(sizes)]

    def value(*at: TirVar) -> Reduction:
        batch, feature, *positions = canonical(at, spec.out)
        places = _origins(spec, positions, taps, extents)
        x = data[laid_out((batch, c, *(p.index for p in places)), spec.data)]
        w = weight[laid_out((feature, c, *taps), spec.kernel)]
        return te.sum(where(places, multiply_scalars(x, w), 0), [c, *taps])

    return te.compute(spec.shape(data.shape, weight.shape), value, name)


def _scattered(spec: Convolution, data: te.Tensor, weight: te.Tensor) -> te.Tensor:
    batch, channels, *extents = canonical(data.shape, spec.data)
    out_group, _, *sizes = canonical(weight.shape, spec.kernel)
    dtype = spec.out_dtype or data.dtype
    wide = computed(dtype)
    in_group = dims.floordiv(channels, spec.groups)
    c = te.reduce_axis(in_group, "c")
    group_axis = (spec.groups,) if spec.groups > 1 else ()

    def product(*at: TirVar) -> Reduction:
        (*group, b), positions, (*taps, o) = (
            at[:count],
            at[count : count + spec.rank],
            at[-spec.rank - 1 :],
        )
        channel = group[0] * from_dim(in_group) + c if group else c
        x = te.cast(data[laid_out((b, channel, *positions), spec.data)], dtype)
        w = te.cast(weight[laid_out((o, channel, *taps), spec.kernel)], dtype)
        return te.sum(te.cast(multiply_scalars(x, w), wide), c)

    count = len(group_axis) + 1
    products = te.compute((*group_axis, batch, *extents, *sizes, out_group), product, "products")
    _, features, *spatial = canonical(spec.shape(data.shape, weight.shape), spec.out)
    leading, *others = sizes
    taps = [
        te.reduce_axis(size, f"r{k}")
        for k, size in enumerate((dims.mul(leading, any_read(extents)), *others))
    ]

    def reaching(*at: TirVar) -> Reduction:
        b, *positions, feature = at
        group = (feature // from_dim(out_group),) if group_axis else ()
        o = feature - group[0] * from_dim(out_group) if group else feature
        places = _origins(spec, positions, taps, extents)
        indices = (*group, b, *(p.index for p in places), *taps, o)
        return te.sum(where(places, products[indices], 0), taps)

    total = te.compute((batch, *spatial, features), reaching, "total")

    def result(*at: TirVar) -> TirExpr:
        b, feature, *positions = canonical(at, spec.out)
        return te.cast(total[(b, *positions, feature)], dtype)

    return te.compute(spec.shape(data.shape, weight.shape), result, "transposed")


def _origins(
    spec: Convolution, positions: Sequence[TirExpr], taps: Sequence[TirExpr], extents: Sequence[Dim]
) -> list[Place]:
    """The positions of data whose taps reach `positions`; strides must divide the distance."""
    origins: list[Place] = []
    for k, (position, tap, extent) in enumerate(zip(positions, taps, extents, strict=True)):
        stride = spec.windows.strides[k]
        distance = position + spec.windows.before[k] - tap * spec.windows.dilation[k]
        at = place(distance // stride, extent)
        divided = () if stride == 1 else (te.equal(distance % stride, 0),)
        origins.append(Place(at.index, (*at.conditions, *divided)))
    return origins


LEGALIZE: Mapping[str, Legalize] = {
    f"nn.{name}": partial(_conv, name, rank)
    for rank in (1, 2, 3)
    for name in (f"conv{rank}d", f"conv{rank}d_transpose")
}
