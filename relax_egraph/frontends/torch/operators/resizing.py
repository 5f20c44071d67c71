"""Images resized by interpolation, and sampled at the points of a grid."""

from collections.abc import Mapping

import numpy as np

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.interpolation import Along, Interpolation
from relax_egraph.frontends.building.resized import resized
from relax_egraph.frontends.torch.node import Node
from relax_egraph.frontends.torch.registry import converts
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Expr, const
from relax_egraph.ir.ops.points import BEYOND

_LINEAR = ("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d")
_NEAREST = tuple(f"upsample_nearest{rank}d" for rank in (1, 2, 3))
_EXACT = tuple(f"_upsample_nearest_exact{rank}d" for rank in (1, 2, 3))
_ANTIALIASED = ("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa")


def _overloads(*names: str) -> tuple[str, ...]:
    return tuple(f"aten.{name}.{how}" for name in names for how in ("default", "vec"))


@converts(*_overloads(*_LINEAR, "upsample_bicubic2d", *_ANTIALIASED))
def interpolate(node: Node) -> Expr:
    """Images resized by linear or cubic interpolation.

    Coordinates are between the borders of an image, or with `align_corners` between the centers of
    the pixels in its corners; of those, antialiasing takes only the scale.
    """
    is_aligned, is_averaged = node.flag("align_corners"), "_aa." in node.op
    method = Interpolation(
        "cubic" if "bicubic" in node.op else "linear",
        "align_corners" if is_aligned and not is_averaged else "half_pixel",
        "floor",
        alpha=-0.5 if is_averaged else -0.75,
        exclude=is_averaged,
        antialias=is_averaged,
    )
    x = _image(node)
    if is_aligned:
        scales = {a: _between_corners(node, a) for a in _axes(node)} if is_averaged else {}
    else:
        scales = _scales(node)
    moves = [Along(a, *_extents(node, a), scales.get(a)) for a in _axes(node)]
    return resized(node, x, method, moves)


@converts(*_overloads(*_NEAREST, *_EXACT))
def nearest(node: Node) -> Expr:
    """Images resized by the pixel at each coordinate, or at its center if it is exact."""
    is_exact = "_exact" in node.op
    method = Interpolation(
        "nearest_neighbor", "tf_half_pixel_for_nn" if is_exact else "asymmetric", "floor"
    )
    x, scales = _image(node), _scales(node)
    moves: list[Along] = []
    for axis in _axes(node):
        extent, target = _extents(node, axis)
        scale = scales.get(axis)
        places = _rounded_otherwise(extent, target, scale, 0.5 if is_exact else 0.0)
        if places is None:
            moves.append(Along(axis, extent, target, scale))
        else:
            x = node.emit("take", x, const(places), axis=axis)
    return resized(node, x, method, moves)


def _image(node: Node) -> Expr:
    return node["input" if "input" in node.arguments else "self"]


def _axes(node: Node) -> range:
    return range(2, len(node.out_shape))


def _between_corners(node: Node, axis: int) -> float:
    """The scale of an axis by the distance of its corners."""
    extent, target = _extents(node, axis)
    if not isinstance(extent, int) or not isinstance(target, int) or min(extent, target) < 2:
        raise ModelError(
            f"it aligns corners of {dims.text(extent)} pixels with those of {dims.text(target)}, "
            "needs numbers above 1"
        )
    return (target - 1) / (extent - 1)


def _extents(node: Node, axis: int) -> tuple[Dim, Dim]:
    """The extent of an axis of the image and of the result."""
    name = "input" if "input" in node.arguments else "self"
    return node.shape(name)[axis], node.out_shape[axis]


def _scales(node: Node) -> Mapping[int, float]:
    """The scales that are given, by axis."""
    if "scale_factors" in node.arguments:
        scales = node.arguments["scale_factors"] or []
    else:
        scales = [value for name, value in node.arguments.items() if name.startswith("scales")]
    return {axis: float(s) for axis, s in enumerate(scales, 2) if s is not None and s > 0}


def _rounded_otherwise(
    extent: Dim, target: Dim, scale: float | None, offset: float
) -> "np.ndarray[tuple[int], np.dtype[np.int64]] | None":
    """The pixels that torch takes along an axis, where its floats have other ones than numbers."""
    if not isinstance(extent, int) or not isinstance(target, int) or target in (extent, 0):
        return None
    if extent == 0 or (target == 2 * extent and not offset):
        return None
    points = np.arange(target)
    step = np.float32(extent / target if scale is None else 1 / scale)
    floats = np.floor((points.astype(np.float32) + np.float32(offset)) * step)
    numbers = np.floor((points + offset) * (extent / target if scale is None else 1 / scale))
    if np.array_equal(floats, numbers):
        return None
    return np.minimum(floats, extent - 1).astype(np.int64)


# --- grids ------------------------------------------------------------------------------


@converts("aten.grid_sampler_2d.default", "aten.grid_sampler_3d.default")
def grid_sampler(node: Node) -> Expr:
    """Images sampled at the points of a grid."""
    methods = ("linear", "nearest_neighbor", "cubic")
    return node.emit(
        "image.grid_sample",
        node["input"],
        node["grid"],
        method=methods[node.integer("interpolation_mode")],
        padding_mode=BEYOND[node.integer("padding_mode")],
        align_corners=node.flag("align_corners"),
    )
