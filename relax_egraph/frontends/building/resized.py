"""Tensors resized along some axes, by `R.image.resize2d` or `resize3d`, or axis by axis.

Our operators compute coordinates from extents.  Models compute them from the scale, which differs
if extents were rounded, or if it is known only at run time.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from relax_egraph.frontends.building.builder import Builder, dtype_of
from relax_egraph.frontends.building.heads import shape_of
from relax_egraph.frontends.building.interpolation import Along, Interpolation, interpolated
from relax_egraph.ir import dims
from relax_egraph.ir.dtypes import is_float, is_integer
from relax_egraph.ir.expr import Expr, ShapeExpr
from relax_egraph.ir.ops.resizing import CROP, MODES

METHODS: Mapping[str, str] = {
    "nearest": "nearest_neighbor",
    "linear": "linear",
    "bilinear": "linear",
    "cubic": "cubic",
}
"""Our interpolation methods by the modes of ONNX."""


def resized(b: Builder, x: Expr, how: Interpolation, moves: Sequence[Along]) -> Expr:
    """`x` in its new size; interpolated integers are rounded, and saturate."""
    moves = [m for m in moves if not _is_identity(how, m)]
    if not moves:
        return x
    is_nearest, dtype = how.method == "nearest_neighbor", dtype_of(x)
    if not is_nearest and not is_float(dtype):
        x = b.cast(x, "float64")
    result = _by_operator(b, x, how, moves)
    if result is None:
        result = interpolated(b, x if is_nearest else b.cast(x, "float64"), how, moves)
    if not is_nearest and is_integer(dtype):
        ends = np.iinfo(dtype)
        rounded = b.emit("round", result)
        result = b.emit("clip", rounded, min=float(ends.min), max=float(ends.max))
    return b.cast(result, dtype)


def _is_identity(how: Interpolation, move: Along) -> bool:
    is_whole = how.mode != CROP or move.region == (0.0, 1.0)
    return is_whole and _is_exact(move) and dims.equal(move.extent, move.target)


def _is_exact(move: Along) -> bool:
    """Whether the scale is the quotient of the extents."""
    if move.scale is None:
        return True
    if isinstance(move.scale, Expr):
        return False
    scale = Fraction(move.scale)
    whole = scale.denominator == 1
    return whole or (isinstance(move.extent, int) and scale * move.extent == move.target)


def _reads_further(how: Interpolation, moves: Sequence[Along]) -> bool:
    """Whether points are averages of several pixels of a shrunk image."""
    return how.antialias and not all(_grows(move) for move in moves)


def _grows(move: Along) -> bool:
    if move.scale is None:
        return dims.prove_ge(move.target, move.extent)
    return not isinstance(move.scale, Expr) and move.scale >= 1


_IMAGES: Mapping[int, Mapping[str, tuple[int, ...]]] = {
    3: {"NCHW": (2,)},
    4: {"NCHW": (2, 3), "NHWC": (1, 2)},
    5: {"NCDHW": (2, 3, 4), "NDHWC": (1, 2, 3)},
}
"""The axes that the operators resize, by rank and layout; a signal is an image of one row."""


def _by_operator(b: Builder, x: Expr, how: Interpolation, moves: Sequence[Along]) -> Expr | None:
    """A resize of images or volumes, if it has the same coordinates."""
    mode = "half_pixel" if how.mode == "half_pixel_symmetric" else how.mode
    exact = all(map(_is_exact, moves))
    if mode not in MODES or not exact or _reads_further(how, moves):
        return None
    shape, by_axis = shape_of(x), {m.axis: m for m in moves}
    layouts = _IMAGES.get(len(shape), {})
    layout = next((name for name, axes in layouts.items() if by_axis.keys() <= {*axes}), None)
    if layout is None:
        return None
    every = [by_axis.get(a) or Along(a, shape[a], shape[a]) for a in layouts[layout]]
    is_signal = len(shape) == 3
    if is_signal:
        every.insert(0, Along(2, 1, 1))
        x = b.emit("expand_dims", x, axis=2)
    ends = [end for k in (0, 1) for end in (m.region[k] for m in every)]
    region = tuple(end for end in ends if not isinstance(end, Expr))
    if mode == CROP and len(region) < len(ends):
        return None
    image = b.emit(
        f"image.resize{len(every)}d",
        x,
        ShapeExpr(tuple(m.target for m in every)),
        roi=region if mode == CROP else None,
        layout=layout,
        method=how.method,
        coordinate_transformation_mode=mode,
        rounding_method=how.rounding,
        cubic_alpha=how.alpha,
        cubic_exclude=int(how.exclude),
        extrapolation_value=how.extrapolation,
    )
    return b.emit("squeeze", image, axis=2) if is_signal else image
