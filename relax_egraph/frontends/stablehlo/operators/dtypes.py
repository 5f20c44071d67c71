"""Elements in another dtype, and as bits of another dtype."""

import numpy as np

from relax_egraph.errors import ModelError
from relax_egraph.frontends.stablehlo.node import Node
from relax_egraph.frontends.stablehlo.registry import converts
from relax_egraph.ir.expr import Expr, ShapeExpr


@converts("stablehlo.convert")
def convert(node: Node) -> Expr:
    """The elements in another dtype."""
    return node.cast(node[0], node.out_dtype)


@converts("stablehlo.bitcast_convert")
def bitcast(node: Node) -> Expr:
    """The bits as elements of another dtype; of a smaller one there are more, in a last axis."""
    old, new = node.dtype(0), node.out_dtype
    if old == new:
        return node[0]
    sizes = np.dtype(old).itemsize, np.dtype(new).itemsize
    shape = node.shape(0)
    if sizes[0] > sizes[1]:
        shape = (*shape, sizes[0] // sizes[1])
    elif sizes[0] < sizes[1]:
        shape = shape[:-1]
    return node.emit("reinterpret", node[0], ShapeExpr(shape), dtype=new)


_FLOATS = {(5, 10): "float16", (8, 7): "bfloat16", (8, 23): "float32", (11, 52): "float64"}


@converts("stablehlo.reduce_precision")
def reduce_precision(node: Node) -> Expr:
    """The elements rounded to a smaller format, in their own dtype."""
    bits = node.integer("exponent_bits"), node.integer("mantissa_bits")
    dtype = node.dtype(0)
    if bits not in _FLOATS:
        raise ModelError(f"floats with {bits[0]} and {bits[1]} bits are not supported")
    return node.cast(node.cast(node[0], _FLOATS[bits]), dtype)
