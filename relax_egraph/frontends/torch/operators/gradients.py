"""Gradients of pools, of resized images and of borders."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy.typing as npt
import torch

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import dtype_of
from relax_egraph.frontends.building.heads import shape_of
from relax_egraph.frontends.building.pools import pool_attributes
from relax_egraph.frontends.torch.node import Node
from relax_egraph.frontends.torch.registry import converts
from relax_egraph.frontends.torch.windows import like_self, windows_of, with_batch
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Expr, ShapeExpr, const


@converts("aten.max_pool2d_with_indices_backward.default")
def max_pool_gradient(node: Node) -> Expr:
    """The gradient of each window at its first greatest element."""
    attributes = pool_attributes(windows_of(node, 2), ceil=node.flag("ceil_mode"))
    grad, x = (with_batch(node, node[name], 2) for name in ("grad_output", "self"))
    return like_self(node, node.emit("grad.max_pool2d_backward", grad, x, **attributes), 2)


@converts("aten.max_pool3d_with_indices_backward.default")
def max_pool_gradient_by_indices(node: Node) -> Expr:
    """The gradient of each window, added at its index in the image."""
    *leading, _, _, _ = node.out_shape
    flat = (*leading, dims.product(node.out_shape[-3:]))
    count = dims.product(node.shape("indices")[-3:])
    grad, indices = (node.reshaped(node[n], (*leading, count)) for n in ("grad_output", "indices"))
    blank = node.emit("zeros", ShapeExpr(flat), dtype=node.out_dtype)
    added = node.emit("scatter_elements", blank, indices, grad, axis=len(leading), reduction="add")
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
