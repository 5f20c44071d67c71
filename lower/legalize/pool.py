"""Pooling: a reduction over window taps, and for means a division by the number of taps."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from operator import mul
from typing import Any

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.ops.pooling import Pool, adaptive_pool, pool
from relax_egraph.ir.ops.window import canonical, laid_out
from relax_egraph.lower.legalize.elementwise import Legalize
from relax_egraph.lower.legalize.window import Place, all_of, clamped, element, place
from relax_egraph.tir import te
from relax_egraph.tir.expr import Operand, TirExpr, TirVar, from_dim
from relax_egraph.tir.scalar import least
from relax_egraph.tir.tensor import Reduction


def _max_pool(rank: int, data: te.Tensor, **attrs: Any) -> te.Tensor:
    spec = pool("R.nn.max_pool", rank, **attrs)
    return _windowed(spec, data, te.max, least(data.dtype), f"max_pool{rank}d")


def _avg_pool(rank: int, data: te.Tensor, **attrs: Any) -> te.Tensor:
    spec = pool("R.nn.avg_pool", rank, **attrs)
    total = _windowed(spec, data, te.sum, 0, f"avg_pool{rank}d_sum")
    _, _, *extents = canonical(data.shape, spec.data)
    _, _, *outputs = canonical(total.shape, spec.out)
    counts = [
        _counts(spec, k, e, m, data.dtype)
        for k, (e, m) in enumerate(zip(extents, outputs, strict=True))
    ]

    def value(*at: TirVar) -> TirExpr:
        _, _, *positions = canonical(at, spec.out)
        counted = [count(p) for count, p in zip(counts, positions, strict=True)]
        return total[at] / te.maximum(reduce(mul, counted), 1)

    return te.compute(total.shape, value, f"avg_pool{rank}d")


def _windowed(
    spec: Pool,
    data: te.Tensor,
    combine: Callable[[TirExpr, list[te.ReduceAxis]], Reduction],
    outside: Operand,
    name: str,
) -> te.Tensor:
    _, _, *extents = canonical(data.shape, spec.data)
    taps = [te.reduce_axis(size, f"r{k}") for k, size in enumerate(spec.sizes)]
    move = spec.windows

    def value(*at: TirVar) -> Reduction:
        batch, channel, *positions = canonical(at, spec.out)
        places = [
            _tested(
                position * move.strides[k] + tap * move.dilation[k] - move.before[k],
                extents[k],
                below=move.before[k] > 0,
                above=move.after[k] > 0 or spec.ceil_mode,
            )
            for k, (position, tap) in enumerate(zip(positions, taps, strict=True))
        ]
        where = laid_out((Place(batch), Place(channel), *places), spec.data)
        conditions = [c for p in where for c in p.conditions]
        read = data[tuple(p.index for p in where)]
        item = te.if_then_else(all_of(conditions), read, outside) if conditions else read
        return combine(item, taps)

    return te.compute(spec.shape(data.shape), value, name)


def _tested(index: TirExpr, extent: Dim, *, below: bool, above: bool) -> Place:
    """`index`, unclamped, with the conditions that it is inside."""
    return Place(index, place(index, extent, below=below, above=above).conditions)


def _counts(
    spec: Pool, k: int, extent: Dim, positions: Dim, dtype: str
) -> Callable[[TirVar], TirExpr]:
    """The number of taps along axis `k` that count at a position: in data, or in counted padding.

    If it differs between positions, it is a table.
    """
    move, size = spec.windows, spec.sizes[k]
    padded = spec.count_include_pad or not (move.before[k] or move.after[k])
    if padded and not spec.ceil_mode:
        return lambda _: te.const(size, dtype)
    first = move.before[k] if padded else 0
    end = dims.add(extent, move.after[k] if padded else 0)

    def count(position: TirVar) -> TirExpr:
        start = position * move.strides[k] - move.before[k]

        def taps_before(limit: TirExpr) -> TirExpr:
            distance = limit - start + (move.dilation[k] - 1)
            return te.maximum(te.minimum(distance // move.dilation[k], size), 0)

        return te.cast(taps_before(from_dim(end)) - taps_before(from_dim(-first)), dtype)

    table = te.compute((positions,), count, f"taps{k}")
    return lambda position: table[position]


def _adaptive_avg_pool(rank: int, data: te.Tensor, **attrs: Any) -> te.Tensor:
    spec = adaptive_pool("R.nn.adaptive_avg_pool", rank, **attrs)
    name = f"adaptive_avg_pool{rank}d"
    _, _, *extents = canonical(data.shape, spec.data)
    shape, sizes = spec.shape(data.shape), spec.extents(tuple(extents))
    pairs = [*zip(extents, sizes, strict=True)]
    taps = [te.reduce_axis(_longest(e, s), f"r{k}") for k, (e, s) in enumerate(pairs)]

    def summed(*at: TirVar) -> Reduction:
        batch, channel, *positions = canonical(at, spec.out)
        places: list[Place] = []
        for position, tap, (extent, size) in zip(positions, taps, pairs, strict=True):
            start, end = _span(position, extent, size)
            index = start + tap
            is_last = () if dims.divides(size, extent) else (index < end,)
            places.append(Place(clamped(index, extent) if is_last else index, is_last))
        where = laid_out((Place(batch), Place(channel), *places), spec.data)
        return te.sum(element(data, where, 0), taps)

    total = te.compute(shape, summed, f"{name}_sum")

    def mean(*at: TirVar) -> TirExpr:
        _, _, *positions = canonical(at, spec.out)
        spans = [_span(p, e, s) for p, (e, s) in zip(positions, pairs, strict=True)]
        count = reduce(mul, [end - start for start, end in spans])
        return total[at] / te.cast(count, data.dtype)

    return te.compute(shape, mean, name)


def _span(position: TirExpr, extent: Dim, size: Dim) -> tuple[TirExpr, TirExpr]:
    """The first index of the window at `position`, and the end of the window."""
    if dims.equal(extent, size):
        return position, position + 1
    if dims.divides(size, extent):
        step = from_dim(dims.floordiv(extent, size))
        return position * step, (position + 1) * step
    e, s = from_dim(extent), from_dim(size)
    return position * e // s, ((position + 1) * e + (s - 1)) // s


def _longest(extent: Dim, size: Dim) -> Dim:
    """A bound on the length of the windows: ``⌈extent / size⌉ + 1``, at most `extent`."""
    if dims.equal(extent, size):
        return 1
    if dims.divides(size, extent):
        return dims.floordiv(extent, size)
    rounded = dims.floordiv(dims.add(extent, dims.sub(size, 1)), size)
    return dims.minimum(dims.add(rounded, 1), extent)


def _table(function: Callable[..., te.Tensor], name: str) -> dict[str, Legalize]:
    ranks: Sequence[int] = (1, 2, 3)
    return {f"nn.{name}{rank}d": partial(function, rank) for rank in ranks}


LEGALIZE: Mapping[str, Legalize] = {
    **_table(_max_pool, "max_pool"),
    **_table(_avg_pool, "avg_pool"),
    **_table(_adaptive_avg_pool, "adaptive_avg_pool"),
}
