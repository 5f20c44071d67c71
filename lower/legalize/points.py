"""Images sampled at points between pixels: weighted sums of the pixels around each point.

The pixels and their weights are tables, one for each axis, which all channels share.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from relax_egraph.errors import NotLowerable
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.ops.resizing import TAPS
from relax_egraph.lower.legalize.elementwise import Legalize
from relax_egraph.lower.legalize.window import any_read, clamped
from relax_egraph.tir import te
from relax_egraph.tir.expr import TirExpr, TirVar, from_dim
from relax_egraph.tir.tensor import Reduction

_ALPHA = -0.75
"""The parameter of cubic interpolation (Keys, 1981)."""

_REACH = 4
"""Points more than this many pixels outside are equivalent."""


@dataclass(frozen=True, slots=True)
class _Axis:
    """An axis of images, and the mode beyond its border."""

    extent: Dim
    beyond: str
    align_corners: bool

    def coordinate(self, at: TirExpr, *, rounds: bool) -> TirExpr:
        """The point `at`, from -1 to 1, in pixels: at most a few beyond the border."""
        dtype = at.dtype
        extent = te.cast(from_dim(self.extent), dtype)
        if self.align_corners:
            at, first, last = (at + 1) / 2 * (extent - 1), te.const(0, dtype), extent - 1
        else:
            at, first, last = ((at + 1) * extent - 1) / 2, te.const(-0.5, dtype), extent - 0.5
        if rounds:
            at = te.nearbyint(at)
        outside = te.logical_or(at < first, at > last)
        if self.beyond == "border":
            at = te.select(outside, te.minimum(te.maximum(at, 0), extent - 1), at)
        elif self.beyond == "reflection":
            at = te.select(outside, _reflected(at, first, last), at)
        at = te.select(at >= -_REACH, at, te.const(-_REACH, dtype))
        return te.select(at <= extent + _REACH, at, extent + _REACH)

    def pixel(self, place: TirExpr) -> TirExpr:
        """The pixel that represents the one at `place`."""
        if self.beyond == "reflection":
            less = 1 if self.align_corners else 0
            period = from_dim(self.extent) * 2 - 2 * less
            phase = place % te.maximum(period, 1)
            place = te.minimum(phase, period - 1 + less - phase)
        return clamped(place, self.extent)

    def counts(self, place: TirExpr, weight: TirExpr) -> TirExpr:
        """`weight`, or 0 if there is no pixel at `place`."""
        if self.beyond != "zeros":
            return weight
        inside = te.logical_and(place >= 0, place < from_dim(self.extent))
        return te.select(inside, weight, te.const(0, weight.dtype))


def _reflected(at: TirExpr, first: TirExpr, last: TirExpr) -> TirExpr:
    """A point, reflected at `first` and `last` until it is between them."""
    span = last - first
    over = te.maximum(first - at, at - last)
    times = te.trunc(over / te.select(span > 0, span, te.const(1, at.dtype)))
    rest = over - times * span
    half = times / 2
    is_even = te.equal(te.floor(half), half)
    below = te.select(is_even, first + rest, last - rest)
    above = te.select(is_even, last - rest, first + rest)
    return te.select(span > 0, te.select(at < first, below, above), first)


def grid_sample(
    data: te.Tensor, grid: te.Tensor, *, method: str, padding_mode: str, align_corners: bool
) -> te.Tensor:
    """The weighted sum of the pixels around each point."""
    batch, channels, *extents = data.shape
    rank = len(extents)
    if not dims.equal(batch, grid.shape[0]) or not dims.equal(rank, grid.shape[-1]):
        raise NotLowerable("whether there is a grid for each image is known only at run time")
    points = grid.shape[1:-1]
    axes = [_Axis(e, padding_mode, align_corners) for e in extents]
    taps = TAPS[method]
    tables = [_around(grid, rank - 1 - k, axis, taps, data.dtype) for k, axis in enumerate(axes)]
    around = _reduced([taps] * rank, extents)

    def value(n: TirVar, c: TirVar, *at: TirVar) -> Reduction:
        pixels = [places[(n, *at, r)] for (places, _), r in zip(tables, around, strict=True)]
        weights = [weight[(n, *at, r)] for (_, weight), r in zip(tables, around, strict=True)]
        return te.sum(data[(n, c, *pixels)] * _product(weights), around)

    return te.compute((batch, channels, *points), value, "grid_sample")


def _product(factors: Sequence[TirExpr]) -> TirExpr:
    return reduce(lambda a, b: a * b, factors)


def _around(
    grid: te.Tensor, k: int, axis: _Axis, taps: int, dtype: str
) -> tuple[te.Tensor, te.Tensor]:
    """The pixels around each point of `grid` along an axis, and their weights."""
    shape, first = grid.shape[:-1], (taps - 1) // 2

    def coordinate(*at: TirVar) -> TirExpr:
        return axis.coordinate(grid[(*at, k)], rounds=taps == 1)

    points = te.compute(shape, coordinate, f"point{k}")

    def place(*at: TirVar) -> TirExpr:
        *point, tap = at
        return te.cast(te.floor(points[tuple(point)]), "int64") + tap - first

    def weight(*at: TirVar) -> TirExpr:
        *point, tap = at
        part = points[tuple(point)] - te.floor(points[tuple(point)])
        return te.cast(axis.counts(place(*at), _weight(part, tap, taps)), dtype)

    pixels = te.compute((*shape, taps), lambda *at: axis.pixel(place(*at)), f"pixel{k}")
    return pixels, te.compute((*shape, taps), weight, f"weight{k}")


def _weight(t: TirExpr, tap: TirExpr, taps: int) -> TirExpr:
    """The weight of pixel `tap` around a point that is `t` after its left neighbour."""
    if taps == 1:
        return te.const(1, t.dtype)
    if taps == 2:
        return te.select(te.equal(tap, 0), 1 - t, t)
    a, square, cube = _ALPHA, t * t, t * t * t
    selected = (square - cube) * a
    others = (
        (cube - square * 2 + t) * a,
        cube * (a + 2) - square * (a + 3) + 1,
        square * (2 * a + 3) - cube * (a + 2) - t * a,
    )
    for number, weight in enumerate(others):
        selected = te.select(te.equal(tap, number), weight, selected)
    return selected


def _reduced(counts: Sequence[Dim], extents: Sequence[Dim]) -> list[te.ReduceAxis]:
    """Reduction axes of `counts`, which are empty if an image of `extents` has no pixel."""
    first, *others = counts
    whole = [dims.mul(first, any_read(extents)), *others]
    return [te.reduce_axis(count, f"r{k}") for k, count in enumerate(whole)]


# --- regions ----------------------------------------------------------------------------


def roi_align(
    data: te.Tensor,
    rois: te.Tensor,
    batch_indices: te.Tensor,
    *,
    pooled_size: tuple[int, ...],
    spatial_scale: float,
    sampling_ratio: int,
    mode: str,
    aligned: bool,
) -> te.Tensor:
    """The mean or maximum over the points of each bin and the pixels around them."""
    count, corners = rois.shape
    if not dims.equal(count, batch_indices.shape[0]) or not dims.equal(corners, 4):
        raise NotLowerable("whether there is an index for each box is known only at run time")
    if sampling_ratio == 0:
        raise NotLowerable("how many points a bin has is known only at run time")
    images, channels, *extents = data.shape
    tables = [
        _of_bins(rois, 1 - k, extents[k], bins, sampling_ratio, (spatial_scale, aligned), data)
        for k, bins in enumerate(pooled_size)
    ]
    around = _reduced([sampling_ratio, 2, sampling_ratio, 2], [images, *extents])

    def pooled(r: TirVar, c: TirVar, *bins: TirVar) -> Reduction:
        image = clamped(te.cast(batch_indices[r], "int64"), images)
        taps = [(r, bins[k], around[2 * k], around[2 * k + 1]) for k in (0, 1)]
        pixels = [pixel[at] for (pixel, _), at in zip(tables, taps, strict=True)]
        (_, u), (_, v) = tables
        value = data[(image, c, *pixels)] * (u[taps[0]] * v[taps[1]])
        return te.max(value, around) if mode == "max" else te.sum(value, around)

    shape = (count, channels, *pooled_size)
    total = te.compute(shape, pooled, "roi_align_pixels")
    has_pixels = from_dim(any_read([images, *extents]))
    zero = te.const(0, data.dtype)

    def value(*at: TirVar) -> TirExpr:
        if mode == "max":
            return te.select(has_pixels > 0, total[at], zero)
        return total[at] / sampling_ratio**2

    return te.compute(shape, value, "roi_align")


def _of_bins(
    rois: te.Tensor,
    k: int,
    extent: Dim,
    bins: int,
    points: int,
    boxes: tuple[float, bool],
    data: te.Tensor,
) -> tuple[te.Tensor, te.Tensor]:
    """Tables by box, bin, point and tap: the pixels along an axis, and their weights."""
    scale, aligned = boxes
    half = 0.5 if aligned else 0.0
    wide = te.cast(from_dim(extent), rois.dtype)

    def coordinate(r: TirVar, i: TirVar, point: TirVar) -> TirExpr:
        start, end = (rois[r, place] * scale - half for place in (k, k + 2))
        length = end - start if aligned else te.maximum(end - start, 1)
        each = length / bins
        inner = (te.cast(point, rois.dtype) + 0.5) * each / points
        return start + te.cast(i, rois.dtype) * each + inner

    shape = (rois.shape[0], bins, points)
    at = te.compute(shape, coordinate, f"point{k}")

    def inside(*i: TirVar) -> TirExpr:
        return te.logical_and(at[i] >= -1, at[i] <= wide)

    def near(*i: TirVar) -> TirExpr:
        zero = te.const(0, rois.dtype)
        return te.maximum(te.minimum(te.select(inside(*i), at[i], zero), wide - 1), 0)

    def pixel(*i: TirVar) -> TirExpr:
        *point, tap = i
        return clamped(te.cast(te.floor(near(*point)), "int64") + tap, extent)

    def weight(*i: TirVar) -> TirExpr:
        *point, tap = i
        part = near(*point) - te.floor(near(*point))
        selected = te.select(te.equal(tap, 0), 1 - part, part)
        return te.cast(te.select(inside(*point), selected, te.const(0, rois.dtype)), data.dtype)

    taps = (*shape, 2)
    return te.compute(taps, pixel, f"pixel{k}"), te.compute(taps, weight, f"weight{k}")


LEGALIZE: Mapping[str, Legalize] = {"image.grid_sample": grid_sample, "image.roi_align": roi_align}
