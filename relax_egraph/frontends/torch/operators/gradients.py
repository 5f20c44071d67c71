"""Gradients of pools, of resized images and of borders."""

import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy.typing as npt
import torch

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import dtype_of
from relax_egraph.frontends.building.heads import shape_of
from relax_egraph.frontends.building.pools import pool_attributes, row_major
from relax_egraph.frontends.building.windows import Windows
from relax_egraph.frontends.torch.node import Node
from relax_egraph.frontends.torch.registry import converts
from relax_egraph.frontends.torch.windows import like_self, windows_of, with_batch
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Expr, ShapeExpr, const


@converts(
    "aten.max_pool2d_with_indices_backward.default",
    "aten.max_pool3d_with_indices_backward.default",
)
def max_pool_gradient(node: Node) -> Expr:
    """The gradient of each window, added at its index in the image."""
    rank = 2 if "pool2d" in node.op else 3
    moves = windows_of(node, rank)
    grad, indices = (with_batch(node, node[name], rank) for name in ("grad_output", "indices"))
    extents = node.out_shape[-rank:]
    covering = [
        -(-reach // stride) for reach, stride in zip(moves.reach, moves.strides, strict=True)
    ]
    if math.prod(covering) > _MOST_WINDOWS:
        return _scattered(node, grad, indices)
    places = row_major(node, (1, 1, *extents))
    zero = node.scalar(0, dtype_of(grad))
    total: Expr | None = None
    for steps in itertools.product(*map(range, covering)):
        windows = [
            _covering(node, moves, k, step, extents[k], shape_of(grad)[2 + k])
            for k, step in enumerate(steps)
        ]
        own, theirs = (_of_windows(node, x, windows) for x in (grad, indices))
        is_there = node.emit("equal", theirs, places)
        for axis, (_, exists) in enumerate(windows, 2):
            if exists is not None:
                shape = [1] * axis + [extents[axis - 2]] + [1] * (rank + 1 - axis)
                is_there = node.emit("logical_and", is_there, node.reshaped(exists, shape))
        term = node.emit("where", is_there, own, zero)
        total = term if total is None else node.emit("add", total, term)
    assert total is not None
    return like_self(node, total, rank)


_MOST_WINDOWS = 9
"""The most windows that an element is searched in, if it is in so many; else it is added to."""

_Windows = tuple[Expr | int, Expr | None]
"""Of each element along an axis, a window that covers it, and whether there is one.

The window is an integer where each covers so many elements, next to each other.
"""


def _covering(node: Node, moves: Windows, k: int, step: int, extent: Dim, count: Dim) -> _Windows:
    """The windows that begin `step` windows before the last one that begins before an element."""
    stride, before = moves.strides[k], moves.before[k]
    if moves.reach[k] == stride and not before and dims.equal(extent, dims.mul(count, stride)):
        return stride, None
    start = node.emit("add", node.sequence(extent), node.scalar(before, "int64"))
    window = node.emit("floor_divide", start, node.scalar(stride, "int64"))
    window = node.emit("subtract", window, node.scalar(step, "int64"))
    is_begun = node.emit("greater_equal", window, node.scalar(0, "int64"))
    is_there = node.emit("less", window, node.as_tensor(count, "int64"))
    return window, node.emit("logical_and", is_begun, is_there)


def _of_windows(node: Node, x: Expr, windows: Sequence[_Windows]) -> Expr:
    """The elements of `x` at the windows of each element of the image."""
    for axis, (window, _) in enumerate(windows, 2):
        if isinstance(window, Expr):
            x = node.emit("take", x, window, axis=axis, mode="clip")
            continue
        shape = shape_of(x)
        wide = (*shape[: axis + 1], window, *shape[axis + 1 :])
        x = node.stretched(node.emit("expand_dims", x, axis=axis + 1), wide)
        x = node.reshaped(x, (*shape[:axis], dims.mul(shape[axis], window), *shape[axis + 1 :]))
    return x


def _scattered(node: Node, grad: Expr, indices: Expr) -> Expr:
    """`grad`, added at `indices` of each image."""
    images, channels, *counts = shape_of(grad)
    shape = images, channels, dims.product(tuple(counts))
    grad, indices = (node.reshaped(x, shape) for x in (grad, indices))
    flat = ShapeExpr((images, channels, dims.product(node.out_shape[-len(counts) :])))
    blank = node.emit("zeros", flat, dtype=node.out_dtype)
    added = node.emit("scatter_elements", blank, indices, grad, axis=2, reduction="add")
    return node.reshaped(added, node.out_shape)


@converts("aten.avg_pool2d_backward.default", "aten.avg_pool3d_backward.default")
def avg_pool_gradient(node: Node) -> Expr:
    """The gradient of each window, in equal parts at the elements that it counts."""
    rank = int(node.op[len("aten.avg_pool")])
    moves, counts = windows_of(node, rank), node.flag("count_include_pad")
    divisor = node.integer("divisor_override") if node.has("divisor_override") else None
    if rank == 2 and divisor is None:
        attributes = pool_attributes(moves, ceil=node.flag("ceil_mode"))
        grad, x = (with_batch(node, node[name], 2) for name in ("grad_output", "self"))
        out = node.emit("grad.avg_pool2d_backward", grad, x, **attributes, count_include_pad=counts)
        return like_self(node, out, 2)
    means = [
        partial(
            _mean_pool,
            size=moves.sizes[k],
            stride=moves.strides[k],
            padding=moves.before[k],
            ceil=node.flag("ceil_mode"),
            counts=counts,
            divisor=None if divisor is None else divisor if k == 0 else 1,
        )
        for k in range(rank)
    ]
    return _through(node, node["grad_output"], node.shape("self")[-rank:], means)


def _mean_pool(
    x: torch.Tensor,
    *,
    size: int,
    stride: int,
    padding: int,
    ceil: bool,
    counts: bool,
    divisor: int | None,
) -> torch.Tensor:
    """The pool of one axis; a window of two axes is divided by `divisor` along one."""
    wide = x.unsqueeze(2)
    pool = torch.nn.functional.avg_pool2d
    return pool(wide, (1, size), (1, stride), (0, padding), ceil, counts, divisor).squeeze(2)


@converts(
    "aten._adaptive_avg_pool2d_backward.default", "aten._adaptive_avg_pool3d_backward.default"
)
def adaptive_avg_pool_gradient(node: Node) -> Expr:
    """The gradient of each window, in equal parts at its elements."""
    rank = int(node.op[len("aten._adaptive_avg_pool")])
    grad, extents = node["grad_output"], node.shape("self")[-rank:]
    sizes = shape_of(grad)[-rank:]
    if set(sizes) == {1}:
        count = node.as_tensor(dims.product(extents), node.out_dtype)
        each = node.emit("divide", grad, count)
        return node.emit("broadcast_to", each, ShapeExpr(node.out_shape))
    pool = torch.nn.functional.adaptive_avg_pool1d
    means = [partial(pool, output_size=_known(size)) for size in sizes]
    return _through(node, grad, extents, means)


_RESIZES = {
    **dict.fromkeys(("upsample_nearest1d", "_upsample_nearest_exact1d", "upsample_linear1d"), 1),
    **dict.fromkeys(
        (
            "upsample_nearest2d",
            "_upsample_nearest_exact2d",
            "upsample_bilinear2d",
            "upsample_bicubic2d",
            "_upsample_bilinear2d_aa",
            "_upsample_bicubic2d_aa",
        ),
        2,
    ),
    **dict.fromkeys(("upsample_nearest3d", "_upsample_nearest_exact3d", "upsample_trilinear3d"), 3),
}
"""The ranks of the operators that resize images."""


@converts(*(f"aten.{name}_backward.default" for name in _RESIZES))
def resize_gradient(node: Node) -> Expr:
    """The gradient of each pixel, added at those that it was interpolated of."""
    name = node.op.removeprefix("aten.").removesuffix("_backward.default")
    rank = _RESIZES[name]
    resize = getattr(torch.ops.aten, name).default
    corners = (node.flag("align_corners"),) if "align_corners" in node.arguments else ()
    scales = [value for key, value in node.arguments.items() if key.startswith("scales")]

    def along(x: torch.Tensor, *, size: int, scale: float | None) -> torch.Tensor:
        shape = (*x.shape, *(1,) * (rank - 1))
        none = (None,) * (rank - 1)
        sizes = [size, *(1,) * (rank - 1)]
        return resize(x.reshape(shape), sizes, *corners, scale, *none).flatten(2)

    targets = node.shape("grad_output")[-rank:]
    maps = [partial(along, size=_known(t), scale=s) for t, s in zip(targets, scales, strict=True)]
    return _through(node, node["grad_output"], node.out_shape[-rank:], maps)


@converts(*(f"aten.replication_pad{rank}d_backward.default" for rank in (1, 2, 3)))
def replicated_border_gradient(node: Node) -> Expr:
    """The gradient of a border, added at the nearest elements."""
    rank = int(node.op[len("aten.replication_pad")])
    widths = node.integers("padding")
    pairs = [widths[2 * k : 2 * k + 2] for k in reversed(range(rank))]
    pad = torch.nn.functional.pad
    maps = [partial(pad, pad=list(pair), mode="replicate") for pair in pairs]
    return _through(node, node["grad_output"], node.out_shape[-rank:], maps)


# --- linear maps along axes -------------------------------------------------------------

_Map = Callable[..., torch.Tensor]
"""A linear map of the last axis of a tensor of rank 3."""


def _through(node: Node, grad: Expr, extents: Sequence[Dim], maps: Sequence[_Map]) -> Expr:
    """`grad`, through the transposes of linear maps of the last axes, of `extents`."""
    rank = len(shape_of(grad))
    dtype = dtype_of(grad)
    for axis, (extent, linear) in enumerate(zip(extents, maps, strict=True), rank - len(maps)):
        matrix = const(_matrix(linear, _known(extent)).T.astype(dtype))
        order = (*(k for k in range(rank) if k != axis), axis)
        back = (*range(axis), rank - 1, *range(axis, rank - 1))
        rows = node.emit("permute_dims", grad, axes=order)
        product = node.emit("matmul", rows, matrix)
        grad = node.emit("permute_dims", product, axes=back)
    return grad


def _matrix(linear: _Map, extent: int) -> npt.NDArray[Any]:
    """The matrix of `linear` on an axis of `extent`, transposed: (extent, result)."""
    eye = torch.eye(extent, dtype=torch.float64)
    return linear(eye[None]).reshape(extent, -1).numpy()


def _known(extent: Dim) -> int:
    if not isinstance(extent, int):
        raise ModelError(f"an image has {dims.text(extent)} pixels, needs a number known now")
    return extent
