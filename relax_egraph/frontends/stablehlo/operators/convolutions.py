"""Convolutions, of any order of axes."""

from collections.abc import Sequence

from jaxlib.mlir.dialects import stablehlo

from relax_egraph.errors import ModelError
from relax_egraph.frontends.stablehlo.node import Node, like, shape_of
from relax_egraph.frontends.stablehlo.operators.padding import padded
from relax_egraph.frontends.stablehlo.registry import converts
from relax_egraph.ir import dims
from relax_egraph.ir.expr import Expr

_MOST_AXES = 3


@converts("stablehlo.convolution")
def convolution(node: Node) -> Expr:
    """A convolution over up to three axes, strided, dilated, transposed or in groups."""
    numbers = stablehlo.ConvDimensionNumbers(node.attribute("dimension_numbers"))
    spatial = tuple(numbers.input_spatial_dimensions)
    rank = len(spatial)
    if not 1 <= rank <= _MOST_AXES:
        raise ModelError(f"a convolution over {rank} axes: needs 1 to {_MOST_AXES}")
    dtype = node.out_dtype
    data = node.permuted(
        node.cast(node[0], dtype),
        (numbers.input_batch_dimension, numbers.input_feature_dimension, *spatial),
    )
    kernel = node.permuted(
        node.cast(node[1], dtype),
        (
            numbers.kernel_output_feature_dimension,
            numbers.kernel_input_feature_dimension,
            *numbers.kernel_spatial_dimensions,
        ),
    )
    for axis, is_reversed in enumerate(node.integers("window_reversal", (0,) * rank)):
        if is_reversed:
            kernel = node.emit("flip", kernel, axis=2 + axis)
    groups = node.integer("feature_group_count", 1)
    parts = node.integer("batch_group_count", 1)
    if parts > 1:
        data, groups = _parts_as_groups(node, data, parts), parts
    out = _convolved(node, data, kernel, groups)
    out_axes = (
        numbers.output_batch_dimension,
        numbers.output_feature_dimension,
        *numbers.output_spatial_dimensions,
    )
    return node.permuted(out, sorted(range(len(out_axes)), key=out_axes.__getitem__))


def _parts_as_groups(node: Node, data: Expr, parts: int) -> Expr:
    """``(parts · n, c, …)`` as ``(n, parts · c, …)``: each part is convolved with its kernels."""
    batch, channels, *rest = shape_of(data)
    each = dims.floordiv(batch, parts)
    apart = node.reshaped(data, (parts, each, channels, *rest))
    order = (1, 0, *range(2, 3 + len(rest)))
    return node.reshaped(node.permuted(apart, order), (each, dims.mul(channels, parts), *rest))


def _convolved(node: Node, data: Expr, kernel: Expr, groups: int) -> Expr:
    rank = len(shape_of(data)) - 2
    ones = (1,) * rank
    strides, dilation = node.integers("window_strides", ones), node.integers("rhs_dilation", ones)
    widths = node.pairs("padding", rank)
    spread = [n - 1 for n in node.integers("lhs_dilation", ones)]
    if any(spread) or any(n < 0 for pair in widths for n in pair):
        low, high = ([0, 0, *(w[side] for w in widths)] for side in (0, 1))
        data = padded(node, data, like(0, data), low, high, (0, 0, *spread))
        widths = ((0, 0),) * rank
    return node.emit(
        f"nn.conv{rank}d",
        data,
        kernel,
        strides=strides,
        padding=_flat(widths),
        dilation=dilation,
        groups=groups,
    )


def _flat(widths: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    return (*(low for low, _ in widths), *(high for _, high in widths))
