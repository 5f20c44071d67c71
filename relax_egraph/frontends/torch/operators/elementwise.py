"""Elementwise arithmetic, with torch's promotion of dtypes."""

from collections.abc import Mapping

from relax_egraph.frontends.torch.node import Node
from relax_egraph.frontends.torch.registry import converts
from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.expr import Expr

_OF_ONE: Mapping[str, str] = {
    "aten.abs.default": "abs",
    "aten.exp.default": "exp",
    "aten.relu.default": "nn.relu",
    "aten.rsqrt.default": "rsqrt",
    "aten.sigmoid.default": "sigmoid",
    "aten.silu.default": "nn.silu",
    "aten.sqrt.default": "sqrt",
    "aten.tanh.default": "tanh",
}
"""Operators of one tensor, computed in the dtype of the result."""


@converts(*_OF_ONE)
def of_one(node: Node) -> Expr:
    """Our operator on the operand, which is cast first where the result has another dtype."""
    return node.emit(_OF_ONE[node.op], node.operand("self", node.out_dtype))


@converts("aten.add.Tensor", "aten.sub.Tensor", "aten.rsub.Scalar", "aten.add.Scalar")
def add(node: Node) -> Expr:
    """``self ± alpha · other``; of booleans, an add is an or."""
    dtype = node.out_dtype
    x, y = node.operand("self", dtype), node.operand("other", dtype)
    if node.arguments["alpha"] != 1:
        y = node.emit("multiply", y, node.operand("alpha", dtype))
    if ".rsub." in node.op:
        x, y = y, x
    if ".add." not in node.op:
        return node.emit("subtract", x, y)
    return node.emit("logical_or" if dtype == "bool" else "add", x, y)


@converts("aten.mul.Tensor", "aten.mul.Scalar")
def multiply(node: Node) -> Expr:
    """``self · other``; of booleans, it is an and."""
    dtype = node.out_dtype
    name = "logical_and" if dtype == "bool" else "multiply"
    return node.emit(name, node.operand("self", dtype), node.operand("other", dtype))


@converts("aten.div.Tensor", "aten.div.Scalar")
def divide(node: Node) -> Expr:
    """``self / other`` in floats."""
    dtype = node.out_dtype
    assert is_float(dtype)
    return node.emit("divide", node.operand("self", dtype), node.operand("other", dtype))


@converts("aten.gelu.default")
def gelu(node: Node) -> Expr:
    """``x · Φ(x)``, exact or by tanh."""
    exact = node.text("approximate") == "none"
    return node.emit("nn.gelu" if exact else "nn.gelu_tanh", node["self"])
