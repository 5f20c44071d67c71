"""Resizing of images: a weighted sum of the pixels around each point.

A coordinate is a fraction of integers, ``whole + rest / divisor``, so that its rounding is exact;
only the region of interest of ``tf_crop_and_resize`` uses floats.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial, reduce
from math import gcd
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
from relax_egraph.tir.expr import TirExpr, TirVar, as_expr, from_dim
from relax_egraph.tir.tensor import Reduction

WIDE = "float64"
"""The dtype of coordinates and weights."""

NARROW_FLOATS = frozenset({"float32", "float16", "bfloat16"})
"""The dtypes of pixels that are weighted in float32."""


@dataclass(frozen=True, slots=True)
class Coordinate:
    """A coordinate along an axis of data: ``whole + rest / divisor``, ``0 <= rest < divisor``."""

    whole: TirExpr
    rest: TirExpr
    divisor: TirExpr
    extent: Dim


def _resize(rank: int, data: te.Tensor, size: Shape, **attrs: Any) -> te.Tensor:
    spec = resizing("R.image.resize", rank, **attrs)
    name = f"resize{rank}d"
    dtype = spec.out_dtype or data.dtype
    _, _, *extents = canonical(data.shape, spec.data)
    shape = spec.shape(data.shape, size)
    nearest = spec.method == "nearest_neighbor"
    wide = "float32" if {data.dtype, dtype} <= NARROW_FLOATS else WIDE

    def coordinates(at: tuple[TirVar, ...]) -> list[Coordinate]:
        points = canonical(at, spec.data)[2:]
        return [
            _coordinate(spec, k, point, extents[k], target)
            for k, (point, target) in enumerate(zip(points, size, strict=True))
        ]

    def closest(*at: TirVar) -> TirExpr | Reduction:
        indices = [_closest(spec, c) for c in coordinates(at)]
        value = data[laid_out((*canonical(at, spec.data)[:2], *indices), spec.data)]
        nonempty = any_read(extents)  # 0 for an image without pixels
        return value if nonempty == 1 else te.sum(value, te.reduce_axis(nonempty, "r0"))

    def finished(*at: TirVar) -> TirExpr:
        points = coordinates(at)
        value: TirExpr = total[at]
        if not nearest and wide == WIDE:
            value = value / reduce(mul, [_scale(spec, c) for c in points])
        value = te.cast(value, dtype)
        if spec.mode != CROP:
            return value
        inside = [c for point in points for c in _inside(point)]
        return te.select(all_of(inside), value, te.cast(te.const(spec.extrapolation, WIDE), dtype))

    if nearest:
        total = te.compute(shape, closest, f"{name}_{spec.method}")
    else:
        total = data
        for k, target in enumerate(size):
            total = _weighted(spec, k, total, target, wide)
        if total.dtype == dtype == wide != WIDE and spec.mode != CROP:
            return total
    return te.compute(shape, finished, name)


def _weighted(spec: Resize, k: int, image: te.Tensor, target: Dim, dtype: str) -> te.Tensor:
    """`image` resized along axis `k` to `target` points, by sums of weighted pixels.

    The pixels around each point and their weights are tables.  Sums are of `dtype`: the weights of
    floats are shares; those of integers are whole numbers, as their sums are truncated.
    """
    axis = spec.data[2 + k]
    extent, taps = image.shape[axis], TAPS[spec.method]

    def pixel(tap: TirVar, i: TirVar) -> TirExpr:
        first = _coordinate(spec, k, i, extent, target).whole
        return clamped(first + tap - (taps // 2 - 1), extent)

    def weight(tap: TirVar, i: TirVar) -> TirExpr:
        at = _coordinate(spec, k, i, extent, target)
        own = _weight(spec, at, tap)
        return own if dtype == WIDE else te.cast(own / _scale(spec, at), dtype)

    pixels = te.compute((taps, target), pixel, f"pixel{k}")
    weights = te.compute((taps, target), weight, f"weights{k}")
    around = te.reduce_axis(dims.mul(taps, any_read([extent])), f"r{k}")

    def summed(*at: TirVar) -> Reduction:
        value = image[(*at[:axis], pixels[around, at[axis]], *at[axis + 1 :])]
        return te.sum(te.cast(value, dtype) * weights[around, at[axis]], around)

    shape = (*image.shape[:axis], target, *image.shape[axis + 1 :])
    return te.compute(shape, summed, f"resize_{spec.method}{k}")


def _coordinate(spec: Resize, k: int, i: TirExpr, extent: Dim, target: Dim) -> Coordinate:
    if spec.mode == CROP:
        return _cropped(*spec.roi[k], i, extent, target)
    if isinstance(extent, int) and isinstance(target, int) and _is_multiple(spec.mode):
        common = max(1, gcd(extent, target))
        numerator, denominator = i * (extent // common), as_expr(target // common)
    else:
        numerator, denominator = _fraction(spec.mode, i, from_dim(extent), from_dim(target))
    divisor = te.maximum(denominator, 1)
    return Coordinate(
        numerator // divisor, te.cast(numerator % divisor, WIDE), te.cast(divisor, WIDE), extent
    )


def _is_multiple(mode: str) -> bool:
    """Whether the coordinate of a point is its number, times the ratio of extents."""
    return mode == "asymmetric"


def _fraction(mode: str, i: TirExpr, extent: TirExpr, target: TirExpr) -> tuple[TirExpr, TirExpr]:
    """The coordinate of point `i`, as numerator and denominator."""
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


def _closest(spec: Resize, at: Coordinate) -> TirExpr:
    """The pixel nearest to a point; a multiple of its number that is rounded down is inside."""
    nearest = _nearest(spec, at)
    is_inside = _is_multiple(spec.mode) and spec.rounding == "floor"
    return nearest if is_inside else clamped(nearest, at.extent)


def _nearest(spec: Resize, at: Coordinate) -> TirExpr:
    match spec.rounding:
        case "floor":
            return at.whole
        case "ceil":
            up = at.rest > 0
        case "round_prefer_floor":
            up = at.rest * 2 > at.divisor
        case "round_prefer_ceil":
            up = at.rest * 2 >= at.divisor
        case _:
            above, half = at.rest * 2 > at.divisor, te.equal(at.rest * 2, at.divisor)
            return at.whole + te.select(above, 1, te.select(half, at.whole % 2, 0))
    return at.whole + te.select(up, 1, 0)


def _inside(at: Coordinate) -> tuple[TirExpr, TirExpr]:
    """The conditions that a point is between the first and the last pixel."""
    return at.whole >= 0, at.whole + te.select(at.rest > 0, 1, 0) < from_dim(at.extent)


def _weight(spec: Resize, at: Coordinate, tap: TirExpr) -> TirExpr:
    """The weight of pixel `tap` around the point."""
    if TAPS[spec.method] == 2:
        return te.select(te.equal(tap, 0), at.divisor - at.rest, at.rest)
    weights = _cubic(spec, at)
    selected = weights[-1]
    for number in (2, 1, 0):
        selected = te.select(te.equal(tap, number), weights[number], selected)
    return selected


def _cubic(spec: Resize, at: Coordinate) -> list[TirExpr]:
    """The weights of the four pixels around a point, by cubic convolution (Keys, 1981)."""
    t, a = at.rest / at.divisor, spec.alpha
    square, cube = t * t, t * t * t
    weights = [
        (cube - square * 2 + t) * a,
        cube * (a + 2) - square * (a + 3) + 1,
        square * (2 * a + 3) - cube * (a + 2) - t * a,
        (square - cube) * a,
    ]
    if not spec.exclude:
        return weights
    return [
        te.select(all_of(_exists(at.whole + (tap - 1), at.extent)), weight, 0)
        for tap, weight in enumerate(weights)
    ]


def _exists(index: TirExpr, extent: Dim) -> tuple[TirExpr, TirExpr]:
    return index >= 0, index < from_dim(extent)


def _scale(spec: Resize, at: Coordinate) -> TirExpr:
    """The sum of the weights along an axis; 1 if it is 0."""
    if TAPS[spec.method] == 2:
        return at.divisor
    if not spec.exclude:
        return te.const(1, WIDE)
    first, *others = _cubic(spec, at)
    total = sum(others, first)
    return te.select(te.equal(total, 0), 1, total)


LEGALIZE: Mapping[str, Legalize] = {
    "image.resize2d": partial(_resize, 2),
    "image.resize3d": partial(_resize, 3),
}
