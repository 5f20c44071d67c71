"""Norms over layers, groups of channels and batches, with the statistics that training keeps."""

from collections.abc import Sequence

import torch

from relax_egraph.frontends.building.builder import dtype_of
from relax_egraph.frontends.building.dim_tensors import number_of
from relax_egraph.frontends.torch.node import Node
from relax_egraph.frontends.torch.registry import converts
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.dtypes import computed
from relax_egraph.ir.expr import Attr, Expr, ShapeExpr


@converts("aten.native_layer_norm.default")
def layer_norm(node: Node) -> tuple[Expr, ...]:
    """The layer norm over trailing axes, its mean and its reciprocal deviation."""
    rank = node.rank("input")
    axes = tuple(range(rank - len(node.sizes("normalized_shape")), rank))
    gamma, beta = _scale_and_shift(node, [node.shape("input")[a] for a in axes])
    epsilon = float(node.number("eps"))
    out = _normalized(node, "nn.layer_norm", (gamma, beta), axes=axes, epsilon=epsilon)
    return (out, *_statistics(node, node["input"], axes))


@converts("aten.native_group_norm.default")
def group_norm(node: Node) -> tuple[Expr, ...]:
    """The norm of groups of channels, and mean and reciprocal deviation of each group."""
    images, channels, *extents = node.shape("input")
    groups, epsilon = node.integer("group"), float(node.number("eps"))
    out = _normalized(
        node,
        "nn.group_norm",
        _scale_and_shift(node, [channels]),
        num_groups=groups,
        channel_axis=1,
        axes=tuple(range(2, 2 + len(extents))),
        epsilon=epsilon,
    )
    each = dims.mul(dims.floordiv(channels, groups), dims.product(tuple(extents)))
    flat = node.reshaped(node["input"], (images, groups, each))
    mean, deviation = _statistics(node, flat, (2,))
    return out, *(node.emit("squeeze", x, axis=2) for x in (mean, deviation))


@converts("aten.rms_norm.default", "aten._fused_rms_norm.default")
def rms_norm(node: Node) -> Expr | tuple[Expr, ...]:
    """The RMS norm over trailing axes, and its factor where training keeps it."""
    x, rank = node["input"], node.rank("input")
    axes = tuple(range(rank - len(node.sizes("normalized_shape")), rank))
    scale = node.get("weight")
    if scale is None:
        extents = [node.shape("input")[a] for a in axes]
        scale = node.emit("ones", ShapeExpr(tuple(extents)), dtype=dtype_of(x))
    wide = computed(dtype_of(x))
    own = getattr(torch, wide)
    epsilon = float(node.number("eps")) if node.has("eps") else torch.finfo(own).eps
    out = _normalized(node, "nn.rms_norm", (scale,), axes=axes, epsilon=epsilon)
    if node.op == "aten.rms_norm.default":
        return out
    kept = node.results[1]
    squares = node.emit("square", node.cast(x, wide))
    mean = node.emit("mean", squares, axis=axes, keepdims=True)
    factor = node.emit("rsqrt", node.emit("add", mean, node.scalar(epsilon, wide)))
    return out, node.cast(factor, (kept and kept.dtype) or wide)


def _scale_and_shift(node: Node, extents: Sequence[Dim]) -> tuple[Expr, Expr]:
    """The arguments weight and bias, by default ones and zeros."""
    weight, bias = node.get("weight"), node.get("bias")
    shape, dtype = ShapeExpr(tuple(extents)), node.dtype("input")
    return (
        node.emit("ones", shape, dtype=dtype) if weight is None else weight,
        node.emit("zeros", shape, dtype=dtype) if bias is None else bias,
    )


def _normalized(node: Node, name: str, parameters: Sequence[Expr], **attrs: Attr) -> Expr:
    """The norm `name` of the input, in the widest dtype of its operands."""
    operands = [node["input"], *parameters]
    narrow = {dtype_of(x) for x in operands}
    dtype = narrow.pop() if len(narrow) == 1 else "float32"
    out = node.emit(name, *(node.cast(x, dtype) for x in operands), **attrs)
    return node.cast(out, node.out_dtype)


def _statistics(node: Node, x: Expr, axes: tuple[int, ...]) -> tuple[Expr, Expr]:
    """Mean and reciprocal deviation over `axes`, which are kept, as the node's second results."""
    wide = computed(dtype_of(x))
    x = node.cast(x, wide)
    mean = node.emit("mean", x, axis=axes, keepdims=True)
    variance = node.emit("variance", x, axis=axes, keepdims=True)
    epsilon = node.scalar(float(node.number("eps")), wide)
    deviation = node.emit("rsqrt", node.emit("add", variance, epsilon))
    kept = (node.results[1] and node.results[1].dtype) or wide
    return node.cast(mean, kept), node.cast(deviation, kept)


# --- batches ----------------------------------------------------------------------------


@converts("aten._native_batch_norm_legit_no_training.default")
def batch_norm(node: Node) -> tuple[Expr, ...]:
    """The batch norm by moving statistics; of those of the batch it keeps none."""
    moving = node["running_mean"], node["running_var"]
    none = node.emit("zeros", ShapeExpr((0,)), dtype=dtype_of(moving[0]))
    return _by_moments(node, *moving), none, none


@converts(
    "aten._native_batch_norm_legit.no_stats",
    "aten._native_batch_norm_legit_functional.default",
)
def batch_norm_of_training(node: Node) -> tuple[Expr, ...]:
    """The batch norm by the statistics of the batch, which are kept, and the moving ones.

    The moving variance takes the unbiased variance of the batch.
    """
    if "running_mean" not in node.arguments or node.flag("training"):
        return _trained(node)
    moving = node["running_mean"], node["running_var"]
    none = node.emit("zeros", ShapeExpr((0,)), dtype=dtype_of(moving[0]))
    return _by_moments(node, *moving), none, none, *moving


def _trained(node: Node) -> tuple[Expr, ...]:
    """The norm by the batch, its mean and reciprocal deviation, and the moving statistics."""
    shape = node.shape("input")
    wide = computed(node.dtype("input"))
    x = node.cast(node["input"], wide)
    axes = (0, *range(2, len(shape)))
    mean = node.emit("mean", x, axis=axes)
    variance = node.emit("variance", x, axis=axes)
    epsilon = node.scalar(float(node.number("eps")), wide)
    deviation = node.emit("rsqrt", node.emit("add", variance, epsilon))
    found = _by_moments(node, mean, variance), mean, deviation
    if "running_mean" not in node.arguments:
        return found
    count = number_of(node, dims.product(tuple(shape[a] for a in axes)), wide)
    less = node.emit("subtract", count, node.scalar(1, wide))
    unbiased = node.emit("divide", node.emit("multiply", variance, count), less)
    moved = (_moved(node, "running_mean", mean), _moved(node, "running_var", unbiased))
    return *found, *moved


@converts("aten._batch_norm_with_update_functional.default")
def batch_norm_with_update(node: Node) -> tuple[Expr, ...]:
    """The same, with memory that only other devices use."""
    out, mean, deviation, *moved = _trained(node)
    reserve = node.emit("zeros", ShapeExpr((0,)), dtype="uint8")
    return out, mean, deviation, reserve, *moved


def _by_moments(node: Node, mean: Expr, variance: Expr) -> Expr:
    """The batch norm by `mean` and `variance`."""
    parameters = (*_scale_and_shift(node, [node.shape("input")[1]]), mean, variance)
    operands = [node["input"], *parameters]
    narrow = {dtype_of(x) for x in operands}
    dtype = narrow.pop() if len(narrow) == 1 else "float32"
    whole = node.emit(
        "nn.batch_norm",
        *(node.cast(x, dtype) for x in operands),
        axis=1,
        epsilon=float(node.number("eps")),
        training=False,
    )
    out, *_ = node.fields(whole)
    return node.cast(out, node.out_dtype)


def _moved(node: Node, name: str, batch: Expr) -> Expr:
    """The moving statistic `name`, moved towards that of the batch."""
    dtype = node.dtype(name)
    momentum = float(node.number("momentum"))
    rest = node.emit("multiply", node[name], node.scalar(1 - momentum, dtype))
    part = node.emit("multiply", node.cast(batch, dtype), node.scalar(momentum, dtype))
    return node.emit("add", rest, part)
