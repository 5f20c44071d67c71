"""Activation functions."""

from relax_egraph.frontends.building.near_zero import expm1
from relax_egraph.frontends.torch.node import Node
from relax_egraph.frontends.torch.registry import converts
from relax_egraph.ir.expr import Expr


@converts("aten.silu.default")
def silu(node: Node) -> Expr:
    """``x · σ(x)``."""
    return node.emit("nn.silu", node["self"])


@converts("aten.gelu.default")
def gelu(node: Node) -> Expr:
    """``x · Φ(x)``, exact or by tanh."""
    exact = node.text("approximate") == "none"
    return node.emit("nn.gelu" if exact else "nn.gelu_tanh", node["self"])


@converts("aten.leaky_relu.default")
def leaky_relu(node: Node) -> Expr:
    """``x`` if positive, else ``negative_slope · x``."""
    return node.emit("nn.leakyrelu", node["self"], alpha=float(node.number("negative_slope")))


@converts("aten.softplus.default")
def softplus(node: Node) -> Expr:
    """``ln(1 + e^(beta · x)) / beta``; above `threshold`, ``x``."""
    settings = {name: float(node.number(name)) for name in ("beta", "threshold")}
    return node.emit("nn.softplus", node["self"], **settings)


@converts("aten.elu.default")
def elu(node: Node) -> Expr:
    """``scale · x`` if positive, else ``scale · alpha · (e^(input_scale · x) - 1)``."""
    x, dtype = node["self"], node.out_dtype
    alpha, scale, inner = (node.number(name) for name in ("alpha", "scale", "input_scale"))
    below = _times(node, expm1(node, _times(node, x, inner)), alpha * scale)
    above = node.emit("greater", x, node.scalar(0, dtype))
    return node.emit("where", above, _times(node, x, scale), below)


@converts("aten._softmax.default", "aten.softmax.int", "aten._safe_softmax.default")
def softmax(node: Node) -> Expr:
    """``e^x / Σ e^x`` along `dim`; a safe one is 0 where all of `x` is minus infinity."""
    x = _along(node)
    found = _normalized(node, "nn.softmax", x)
    if "_safe_" not in node.op:
        return found
    nothing = node.emit("equal", x, node.scalar(-float("inf"), node.out_dtype))
    hidden = node.emit("prod", nothing, axis=(node.axis("dim", node.rank("self")),), keepdims=True)
    return node.emit("where", hidden, node.scalar(0, node.out_dtype), found)


@converts("aten._log_softmax.default", "aten.log_softmax.int")
def log_softmax(node: Node) -> Expr:
    """``x - ln Σ e^x`` along `dim`."""
    return _normalized(node, "nn.log_softmax", _along(node))


def _along(node: Node) -> Expr:
    return node.operand("self", node.out_dtype)


def _normalized(node: Node, name: str, x: Expr) -> Expr:
    if node.rank("self"):
        return node.emit(name, x, axis=node.axis("dim", node.rank("self")))
    return node.reshaped(node.emit(name, node.reshaped(x, (1,)), axis=0), ())


def _times(node: Node, x: Expr, factor: float) -> Expr:
    return x if factor == 1 else node.emit("multiply", x, node.scalar(factor, node.out_dtype))
