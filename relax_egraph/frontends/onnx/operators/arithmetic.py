"""Quotients and remainders, which differ between integers and floats."""

from relax_egraph.frontends.onnx.node import Node
from relax_egraph.frontends.onnx.operators.alignment import aligned
from relax_egraph.frontends.onnx.registry import converts
from relax_egraph.ir.dtypes import is_float, is_signed
from relax_egraph.ir.expr import Expr


@converts("Div")
def divide(node: Node) -> Expr:
    """A quotient; integer quotients are rounded towards 0."""
    x, y = aligned(node)
    dtype = node.dtype(0)
    if is_float(dtype):
        return node.emit("divide", x, y)
    if is_signed(dtype):
        x = node.emit("subtract", x, node.emit("mod", x, y))
    return node.emit("floor_divide", x, y)


@converts("Mod")
def remainder(node: Node) -> Expr:
    """A remainder, with the sign of the dividend if `fmod` is set, else of the divisor."""
    return node.emit("mod" if node.attrs.integer("fmod") else "floor_mod", node[0], node[1])
