"""Resizing of images: a weighted sum over the pixels around each point.

A point's coordinate is a fraction of whole numbers, ``whole + rest / divisor``, so that its
rounding is exact; only the region of interest of ``tf_crop_and_resize`` is of floats.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial, reduce
from operator import mul
from typing import Any

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.ops.resizing import CROP, TAPS, Resize, resizing
from relax_egraph.ir.ops.window import canonical, laid_out
from relax_egraph.ir.struct_info import Shape
from relax_egraph.lower.legalize.elementwise import Legalize
from relax_egraph.lower.legalize.window import all_of, any_read, clamped
from relax_egraph.tir import te
from relax_egraph.tir.expr import TirExpr, TirVar, from_dim
from relax_egraph.tir.tensor import Reduction

WIDE = "float64"


@dataclass(frozen=True, slots=True)
class Coordinate:
    """A point along an axis of data: ``whole + rest / divisor``, ``0 <= rest < divisor``."""

    whole: TirExpr
    rest: TirExpr
    divisor: TirExpr
    extent: Dim


def _resize(rank: int, data: te.Tensor, size: Shape, **attrs: Any) -> te.Tensor:
    how = resizing("R.image.resize", rank, **attrs)
    name = f"resize{rank}d"
    dtype = how.out_dtype or data.dtype
    _, _, *extents = canonical(data.shape, how.data)
    shape = how.shape(data.shape, size)
    nearest = how.method == "nearest_neighbor"

    def coordinates(at: tuple[TirVar, ...]) -> list[Coordinate]:
        points = canonical(at, how.data)[2:]
        return [
            _coordinate(how, k, point, extents[k], target)
            for k, (point, target) in enumerate(zip(points, size, strict=True))
        ]

    def closest(*at: TirVar) -> TirExpr | Reduction:
        indices = [clamped(_nearest(how, c), c.extent) for c in coordinates(at)]
        value = data[laid_out((*canonical(at, how.data)[:2], *indices), how.data)]
        some = any_read(extents)  # an image without pixels has none to read
        return value if some == 1 else te.sum(value, te.reduce_axis(some, "r0"))

    def finished(*at: TirVar) -> TirExpr:
        points = coordinates(at)
        value: TirExpr = total[at]
        if not nearest:
            value = value / reduce(mul, [_scale(how, c) for c in points])
        value = te.cast(value, dtype)
        if how.mode != CROP:
            return value
        inside = [c for point in points for c in _inside(point)]
        return te.select(all_of(inside), value, te.cast(te.const(how.extrapolation, WIDE), dtype))

    if nearest:
        total = te.compute(shape, closest, f"{name}_{how.method}")
    else:
        total = data
        for k, target in enumerate(size):
            total = _weighted(how, k, total, target)
    return te.compute(shape, finished, name)


def _weighted(how: Resize, k: int, image: te.Tensor, target: Dim) -> te.Tensor:
    """`image` with the sums of weighted pixels along axis `k`, of which there are `target`.

    Where the pixels are, and their weights, are tables.
    """
    axis = how.data[2 + k]
    extent, taps = image.shape[axis], TAPS[how.method]

    def weight(i: TirVar, tap: TirVar) -> TirExpr:
        return _weight(how, _coordinate(how, k, i, extent, target), tap)

    first = te.compute(
        (target,), lambda i: _coordinate(how, k, i, extent, target).whole, f"pixel{k}"
    )
    weights = te.compute((target, taps), weight, f"weights{k}")
    around = te.reduce_axis(dims.mul(taps, any_read([extent])), f"r{k}")

    def summed(*at: TirVar) -> Reduction:
        pixel = clamped(first[at[axis]] + around - (taps // 2 - 1), extent)
        value = te.cast(image[(*at[:axis], pixel, *at[axis + 1 :])], WIDE)
        return te.sum(value * weights[at[axis], around], around)

    shape = (*image.shape[:axis], target, *image.shape[axis + 1 :])
    return te.compute(shape, summed, f"resize_{how.method}{k}")


def _coordinate(how: Resize, k: int, i: TirExpr, extent: Dim, target: Dim) -> Coordinate:
    if how.mode == CROP:
        return _cropped(*how.roi[k], i, extent, target)
    above, below = _fraction(how.mode, i, from_dim(extent), from_dim(target))
    divisor = te.maximum(below, 1)
    return Coordinate(
        above // divisor, te.cast(above % divisor, WIDE), te.cast(divisor, WIDE), extent
    )


def _fraction(mode: str, i: TirExpr, extent: TirExpr, target: TirExpr) -> tuple[TirExpr, TirExpr]:
    """The coordinate of point `i`, above and below the line."""
    match mode:
        case "half_pixel":
            return (i * 2 + 1) * extent - target, target * 2
        case "pytorch_half_pixel":
            return te.select(target > 1, (i * 2 + 1) * extent - target, 0), target * 2
        case "tf_half_pixel_for_nn":
            return (i * 2 + 1) * extent, target * 2
        case "align_corners":
            return i * (extent - 1), target - 1
        case _:
            return i * extent, target


def _cropped(start: float, end: float, i: TirExpr, extent: Dim, target: Dim) -> Coordinate:
    last = te.cast(from_dim(extent) - 1, WIDE)
    count = te.maximum(from_dim(target) - 1, 1)
    one = te.const(1, WIDE)
    spread = te.cast(i, WIDE) * (end - start) * last / te.cast(count, WIDE) + last * start
    at = te.select(from_dim(target) > 1, spread, last * (0.5 * (start + end)))
    truncated = te.cast(at, "int64")
    whole = te.select(te.cast(truncated, WIDE) > at, truncated - 1, truncated)
    return Coordinate(whole, at - te.cast(whole, WIDE), one, extent)


def _nearest(how: Resize, at: Coordinate) -> TirExpr:
    match how.rounding:
        case "floor":
            return at.whole
        case "ceil":
            up = at.rest > 0
        case "round_prefer_floor":
            up = at.rest * 2 > at.divisor
        case _:
            up = at.rest * 2 >= at.divisor
    return at.whole + te.select(up, 1, 0)


def _inside(at: Coordinate) -> tuple[TirExpr, TirExpr]:
    """The conditions for which a point is not beyond the first or the last pixel."""
    return at.whole >= 0, at.whole + te.select(at.rest > 0, 1, 0) < from_dim(at.extent)


def _weight(how: Resize, at: Coordinate, tap: TirExpr) -> TirExpr:
    """The weight of pixel number `tap` of those that are read."""
    if TAPS[how.method] == 2:
        return te.select(te.equal(tap, 0), at.divisor - at.rest, at.rest)
    weights = _cubic(how, at)
    chosen = weights[-1]
    for number in (2, 1, 0):
        chosen = te.select(te.equal(tap, number), weights[number], chosen)
    return chosen


def _cubic(how: Resize, at: Coordinate) -> list[TirExpr]:
    """The weights of the four pixels around a point: Keys' cubic convolution."""
    t, a = at.rest / at.divisor, how.alpha
    square, cube = t * t, t * t * t
    weights = [
        (cube - square * 2 + t) * a,
        cube * (a + 2) - square * (a + 3) + 1,
        square * (2 * a + 3) - cube * (a + 2) - t * a,
        (square - cube) * a,
    ]
    if not how.exclude:
        return weights
    return [
        te.select(all_of(_exists(at.whole + (tap - 1), at.extent)), weight, 0)
        for tap, weight in enumerate(weights)
    ]


def _exists(index: TirExpr, extent: Dim) -> tuple[TirExpr, TirExpr]:
    return index >= 0, index < from_dim(extent)


def _scale(how: Resize, at: Coordinate) -> TirExpr:
    """What the weights along an axis add up to; 1 where that is 0."""
    if TAPS[how.method] == 2:
        return at.divisor
    if not how.exclude:
        return te.const(1, WIDE)
    first, *others = _cubic(how, at)
    total = sum(others, first)
    return te.select(te.equal(total, 0), 1, total)


LEGALIZE: Mapping[str, Legalize] = {
    "image.resize2d": partial(_resize, 2),
    "image.resize3d": partial(_resize, 3),
}
