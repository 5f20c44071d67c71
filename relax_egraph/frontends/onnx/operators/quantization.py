"""Quantization: conversions to and from scaled integers, and their exact products.

A product of scaled integers is a product of differences from the zero points in int32, which is
then scaled: floats would round differently where the result is rounded to integers again.
"""

import numpy as np

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import dtype_of, info_of
from relax_egraph.frontends.building.positions import along
from relax_egraph.frontends.building.windows import SPATIAL
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.frontends.onnx.operators.windows import windows_of
from relax_egraph.frontends.onnx.registry import converts
from relax_egraph.frontends.onnx.tensors import dtype_of as dtype_named
from relax_egraph.ir import dims
from relax_egraph.ir.dtypes import computed, is_float
from relax_egraph.ir.expr import Expr, ShapeExpr
from relax_egraph.ir.ops.quantize import NARROW

# --- conversions ------------------------------------------------------------------------


@converts("QuantizeLinear")
def quantize(node: Node) -> Expr:
    """``round(x / scale) + zero_point``, saturated to the dtype."""
    x, scale = node[0], node[1]
    dtype = _quantized_dtype(node)
    wide = _precision(node, dtype_of(x), dtype_of(scale))
    x, scale = node.cast(x, wide), node.cast(scale, wide)
    zero = node[2] if node.has(2) else node.emit("zeros_like", scale, dtype=dtype)
    axis, block = _axis(node), node.attrs.schema_default("block_size") or 0
    if info_of(scale).ndim < 2 and not block:
        return node.emit("quantize", x, scale, zero, axis=axis, out_dtype=dtype)
    scale, zero = (_by_element(node, p, axis, block) for p in (scale, zero))
    rounded = node.emit("round", node.emit("divide", x, scale))
    return _limited(node, node.emit("add", rounded, node.cast(zero, wide)), dtype)


@converts("DequantizeLinear")
def dequantize(node: Node) -> Expr:
    """``(x - zero_point) · scale``."""
    x, scale = node[0], node[1]
    code = node.attrs.schema_default("output_dtype")
    dtype = dtype_named(code) if code else dtype_of(scale)
    axis, block = _axis(node), node.attrs.schema_default("block_size") or 0
    whole = node.has(2) and dtype_of(node[2]) not in NARROW
    if info_of(scale).ndim < 2 and not block and not whole:
        zero = node[2] if node.has(2) else node.emit("zeros_like", scale, dtype="int8")
        return node.emit("dequantize", x, scale, zero, axis=axis, out_dtype=dtype)
    wide = computed(dtype)
    x = node.cast(x, "int32")
    if node.has(2):
        zero = _by_element(node, node[2], axis, block)
        x = node.emit("subtract", x, node.cast(zero, "int32"))
    scale = node.cast(_by_element(node, scale, axis, block), wide)
    return node.cast(node.emit("multiply", node.cast(x, wide), scale), dtype)


@converts("DynamicQuantizeLinear")
def quantize_dynamically(node: Node) -> tuple[Expr, ...]:
    """Bytes with a scale and a zero point such that all elements and 0 are in range."""
    x, dtype = node[0], node.dtype(0)
    zero, most = node.scalar(0, dtype), node.scalar(255, dtype)
    low = node.emit("minimum", node.emit("min", x, axis=None), zero)
    high = node.emit("maximum", node.emit("max", x, axis=None), zero)
    span = node.emit("subtract", high, low)
    flat = node.emit("equal", span, zero)
    unit = node.emit("where", flat, node.scalar(1, dtype), span)
    scale = node.emit("divide", unit, most)
    lowest = node.emit("subtract", zero, node.emit("divide", low, scale))
    place = node.emit("round", node.emit("minimum", node.emit("maximum", lowest, zero), most))
    zero_point = node.cast(place, "uint8")
    out = node.emit("quantize", x, scale, zero_point, axis=-1, out_dtype="uint8")
    return out, scale, zero_point


def _quantized_dtype(node: Node) -> str:
    code = node.attrs.schema_default("output_dtype")
    if node.has(2):
        dtype = node.dtype(2)
        if code and dtype_named(code) != dtype:
            raise ModelError(f"its output_dtype is {dtype_named(code)}, its zero point {dtype}")
        return dtype
    return dtype_named(code) if code else "uint8"


def _precision(node: Node, x: str, scale: str) -> str:
    """The dtype of the quotient."""
    code = node.attrs.schema_default("precision")
    if code:
        return dtype_named(code)
    return x if x == scale and is_float(x) else np.result_type(x, scale).name


def _axis(node: Node) -> int:
    """The axis along which scales differ; any axis for a single scale."""
    rank, axis = node.rank(0), node.attrs.schema_default("axis")
    whole = info_of(node[1]).ndim == 0 or info_of(node[1]).dims == (1,)
    return -1 if axis is None or whole else node.normalized(axis, rank)


def _by_element(node: Node, parameter: Expr, axis: int, block: int) -> Expr:
    """Scales or zero points, broadcastable to operand 0: each serves a block."""
    rank = info_of(parameter).ndim
    if rank == 0:
        return parameter
    if rank == 1 and node.rank(0) != 1 and not block:
        return along(node, parameter, axis, node.rank(0))
    if rank != node.rank(0):
        raise ModelError(f"its scales have rank {rank}, need {node.rank(0)}")
    if block < 1:
        return parameter
    each = node.emit("repeat", parameter, repeats=block, axis=axis)
    shape, extent = info_of(each).dims, node.shape(0)[axis]
    if shape is not None and dims.equal(shape[axis], extent):
        return each
    cut = ShapeExpr((0,)), ShapeExpr((extent,))
    return node.emit("strided_slice", each, *cut, axes=(axis,))


def _limited(node: Node, x: Expr, dtype: str) -> Expr:
    """`x`, of integral floats, saturated to `dtype`."""
    limits = np.iinfo(dtype)
    return node.cast(node.emit("clip", x, min=float(limits.min), max=float(limits.max)), dtype)


# --- products ---------------------------------------------------------------------------


@converts("MatMulInteger")
def matmul_integer(node: Node) -> Expr:
    """The product of differences from zero points, in int32."""
    zeros = [node.get(place) for place in (2, 3)]
    return _product(node, (node[0], zeros[0]), (node[1], zeros[1]))


@converts("QLinearMatMul")
def qlinear_matmul(node: Node) -> Expr:
    """The product of scaled integers, rescaled."""
    out = _product(node, (node[0], node[2]), (node[3], node[5]))
    left, right = _of_rows(node, node[1]), node[4]
    factor = node.emit("divide", node.emit("multiply", left, right), node[6])
    return _scaled(node, out, factor, node[7])


@converts("ConvInteger")
def conv_integer(node: Node) -> Expr:
    """The convolution of differences from zero points, in int32."""
    return _convolved(node, node[0], node.get(2), 1, node.get(3))


@converts("QLinearConv")
def qlinear_conv(node: Node) -> Expr:
    """The convolution of scaled integers, with a bias in int32, rescaled."""
    out = _convolved(node, node[0], node[2], 3, node[5])
    rank = node.rank(0)
    if node.has(8):
        out = node.emit("add", out, along(node, node[8], 1, rank))
    scale = node[4]
    if info_of(scale).ndim == 1:
        scale = along(node, scale, 1, rank)
    factor = node.emit("divide", node.emit("multiply", node[1], scale), node[6])
    return _scaled(node, out, factor, node[7])


def _product(node: Node, a: tuple[Expr, Expr | None], b: tuple[Expr, Expr | None]) -> Expr:
    """The product of matrices with zero points; `a` may have one for each row."""
    x, zero = a
    left = _difference(node, x, None if zero is None else _of_rows(node, zero))
    return node.emit("matmul", left, _difference(node, *b))


def _of_rows(node: Node, parameter: Expr) -> Expr:
    """A vector as a column."""
    single = info_of(parameter).dims == (1,)
    if info_of(parameter).ndim != 1 or single:
        return parameter
    return node.emit("expand_dims", parameter, axis=1)


def _difference(node: Node, x: Expr, zero: Expr | None) -> Expr:
    """``x - zero`` in int32."""
    wide = node.cast(x, "int32")
    return wide if zero is None else node.emit("subtract", wide, node.cast(zero, "int32"))


def _convolved(node: Node, x: Expr, x_zero: Expr | None, place: int, w_zero: Expr | None) -> Expr:
    """The convolution of `x` with operand `place`, both with zero points."""
    sizes = tuple(e for e in node.shape(place)[2:] if isinstance(e, int))
    if len(sizes) != node.rank(place) - 2:
        raise ModelError("the extents of its kernel are known only at run time")
    moves = windows_of(node, sizes)
    if w_zero is not None and info_of(w_zero).ndim == 1:
        w_zero = along(node, w_zero, 0, node.rank(place))
    letters = SPATIAL[moves.rank]
    return node.emit(
        f"nn.conv{moves.rank}d",
        _difference(node, x, x_zero),
        _difference(node, node[place], w_zero),
        strides=moves.strides,
        padding=moves.padding,
        dilation=moves.dilations,
        groups=node.attrs.integer("group"),
        data_layout=f"NC{letters}",
        kernel_layout=f"OI{letters}",
    )


def _scaled(node: Node, x: Expr, factor: Expr, zero: Expr) -> Expr:
    """``round(x · factor + zero)`` in the dtype of `zero`."""
    exact = node.cast(x, "float64")
    scaled = node.emit("multiply", exact, node.cast(factor, "float64"))
    moved = node.emit("add", scaled, node.cast(zero, "float64"))
    return _limited(node, node.emit("round", moved), dtype_of(zero))
