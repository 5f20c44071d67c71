"""Mel filter banks."""

import math

from relax_egraph.frontends.building.dim_tensors import number_of
from relax_egraph.frontends.building.positions import counted
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.frontends.onnx.operators.positions import extent_of
from relax_egraph.frontends.onnx.registry import converts
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Expr, PrimValue, ShapeExpr

_HALF_MEL, _MELS = 700.0, 2595.0
"""A frequency is ``2595 · lg(1 + f / 700)`` mels."""


@converts("MelWeightMatrix")
def mel_weights(node: Node) -> Expr:
    """Triangular filters over the bins of a spectrum, equally wide on the mel scale, by columns."""
    filters, length = extent_of(node, 0), extent_of(node, 1)
    low, high = (_mel(node, node[place]) for place in (3, 4))
    count = dims.add(filters, 2)
    span = node.emit("subtract", high, low)
    step = node.emit("divide", span, number_of(node, count, "float64"))
    line = node.emit("arange", PrimValue(count), dtype="float64")
    mels = node.emit("add", node.emit("multiply", line, step), low)
    exponent = node.emit("multiply", mels, node.scalar(math.log(10) / _MELS, "float64"))
    grown = node.emit("subtract", node.emit("exp", exponent), node.scalar(1, "float64"))
    hertz = node.emit("multiply", grown, node.scalar(_HALF_MEL, "float64"))
    more = number_of(node, dims.add(length, 1), "float64")
    rate = node.emit("reshape", node.cast(node[2], "float64"), ShapeExpr(()))
    edges = node.emit("floor_divide", node.emit("multiply", hertz, more), rate)
    lower, center, upper = (_from(node, edges, k, filters) for k in range(3))
    row = counted(node, dims.add(dims.floordiv(length, 2), 1), 0, 2, "float64")
    dtype = node.attrs.dtype("output_datatype")
    return node.cast(_triangles(node, row, lower, center, upper), dtype)


def _mel(node: Node, hertz: Expr) -> Expr:
    """A frequency on the mel scale, rounded as its dtype is."""
    wide = node.emit("reshape", node.cast(hertz, "float64"), ShapeExpr(()))
    part = node.emit("divide", wide, node.scalar(_HALF_MEL, "float64"))
    logarithm = node.emit("log", node.emit("add", part, node.scalar(1, "float64")))
    return node.emit("multiply", logarithm, node.scalar(_MELS / math.log(10), "float64"))


def _from(node: Node, edges: Expr, begin: int, count: Dim) -> Expr:
    cut = ShapeExpr((begin,)), ShapeExpr((dims.add(count, begin),))
    return node.emit("strided_slice", edges, *cut, axes=(0,))


def _triangles(node: Node, row: Expr, lower: Expr, center: Expr, upper: Expr) -> Expr:
    zero, one = node.scalar(0, "float64"), node.scalar(1, "float64")

    def both(a: Expr, b: Expr) -> Expr:
        return node.emit("logical_and", a, b)

    def share(a: Expr, b: Expr) -> Expr:
        flat = node.emit("equal", b, zero)
        return node.emit("divide", a, node.emit("where", flat, one, b))

    width = node.emit("subtract", center, lower)
    rising = share(node.emit("subtract", row, lower), width)
    at_center = node.emit("equal", row, center)
    rises = both(node.emit("greater_equal", row, lower), node.emit("less_equal", row, center))
    point = node.emit("logical_and", node.emit("equal", width, zero), at_center)
    out = node.emit("where", rises, rising, zero)
    out = node.emit("where", point, one, out)
    falling = share(node.emit("subtract", upper, row), node.emit("subtract", upper, center))
    falls = both(node.emit("greater_equal", row, center), node.emit("less", row, upper))
    return node.emit("where", falls, falling, out)
