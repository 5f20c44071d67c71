"""Activation functions."""

from relax_egraph.errors import ModelError
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.frontends.onnx.operators.alignment import beginning_at
from relax_egraph.frontends.onnx.registry import converts
from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.expr import Expr
from relax_egraph.ir.reference.activation import SELU_ALPHA, SELU_SCALE

_STRAIGHT = 40.0
"""Above it softplus equals its operand, even in float64."""


@converts("Relu")
def relu(node: Node) -> Expr:
    """``max(x, 0)``."""
    return node.emit("nn.relu", node[0])


@converts("LeakyRelu")
def leaky_relu(node: Node) -> Expr:
    """``x`` if positive, else ``alpha · x``."""
    return node.emit("nn.leakyrelu", node[0], alpha=node.attrs.number("alpha"))


@converts("PRelu")
def sloped_relu(node: Node) -> Expr:
    """``x`` if positive, else ``slope · x``; below opset 7 a slope is along axis 1."""
    x, slope = node[0], node[1]
    if node.version < 7 and node.rank(1) == 1:
        slope = beginning_at(node, slope, 1)
    return _above(node, x, 0, x, node.emit("multiply", slope, x))


@converts("ThresholdedRelu")
def thresholded_relu(node: Node) -> Expr:
    """``x`` if above `alpha`, else 0."""
    x = node[0]
    return _above(node, x, node.attrs.number("alpha"), x, node.scalar(0, node.dtype(0)))


@converts("Elu")
def elu(node: Node) -> Expr:
    """``x`` if positive, else ``alpha · (eˣ - 1)``."""
    x = node[0]
    return _above(node, x, 0, x, _times(node, _expm1(node, x), node.attrs.number("alpha")))


@converts("Celu")
def celu(node: Node) -> Expr:
    """``x`` if positive, else ``alpha · (e^(x / alpha) - 1)``."""
    x, alpha = node[0], node.attrs.number("alpha")
    scaled = x if alpha == 1 else node.emit("divide", x, node.scalar(alpha, node.dtype(0)))
    return _above(node, x, 0, x, _times(node, _expm1(node, scaled), alpha))


@converts("Selu")
def selu(node: Node) -> Expr:
    """``gamma · x`` if positive, else ``gamma · alpha · (eˣ - 1)``."""
    x, alpha, gamma = node[0], node.attrs.number("alpha"), node.attrs.number("gamma")
    if abs(alpha - SELU_ALPHA) < 1e-6 and abs(gamma - SELU_SCALE) < 1e-6:
        return node.emit("nn.selu", x)
    below = _times(node, _expm1(node, x), alpha)
    return _times(node, _above(node, x, 0, x, below), gamma)


@converts("HardSigmoid")
def hard_sigmoid(node: Node) -> Expr:
    """``alpha · x + beta``, clamped to [0, 1]."""
    return _line(node, node.attrs.number("alpha"), node.attrs.number("beta"))


@converts("HardSwish")
def hard_swish(node: Node) -> Expr:
    """``x · (x / 6 + ½)``, with the factor clamped to [0, 1]."""
    return node.emit("multiply", node[0], _line(node, 1 / 6, 0.5))


@converts("Softplus")
def softplus(node: Node) -> Expr:
    """``ln(1 + eˣ)``."""
    return _soft(node)


@converts("Softsign")
def softsign(node: Node) -> Expr:
    """``x / (1 + |x|)``."""
    size = node.emit("add", node.emit("abs", node[0]), node.scalar(1, node.dtype(0)))
    return node.emit("divide", node[0], size)


@converts("Mish")
def mish(node: Node) -> Expr:
    """``x · tanh(softplus(x))``."""
    return node.emit("multiply", node[0], node.emit("tanh", _soft(node)))


@converts("Swish")
def swish(node: Node) -> Expr:
    """``x · sigmoid(alpha · x)``."""
    x, alpha = node[0], node.attrs.number("alpha")
    if alpha == 1:
        return node.emit("nn.silu", x)
    return node.emit("multiply", x, node.emit("sigmoid", _times(node, x, alpha)))


@converts("Gelu")
def gelu(node: Node) -> Expr:
    """``x/2 · (1 + erf(x/√2))``, or its approximation by tanh."""
    operators = {"none": "nn.gelu", "tanh": "nn.gelu_tanh"}
    approximation = node.attrs.text("approximate")
    if approximation not in operators:
        raise ModelError(
            f"its approximation is {approximation!r}, needs one of {', '.join(operators)}"
        )
    return node.emit(operators[approximation], node[0])


@converts("Shrink")
def shrink(node: Node) -> Expr:
    """``x - bias`` above `lambd`, ``x + bias`` below ``-lambd``, and 0 between them."""
    dtype = node.dtype(0)
    wide = dtype if is_float(dtype) else "float64"
    x, bias, reach = node.cast(node[0], wide), node.attrs.number("bias"), node.attrs.number("lambd")
    down, up = (node.emit(op, x, node.scalar(bias, wide)) for op in ("subtract", "add"))
    below = node.emit("less", x, node.scalar(-reach, wide))
    lower = node.emit("where", below, up, node.scalar(0, wide))
    above = node.emit("greater", x, node.scalar(reach, wide))
    return node.cast(node.emit("where", above, down, lower), dtype)


def _soft(node: Node) -> Expr:
    return node.emit("nn.softplus", node[0], threshold=_STRAIGHT)


def _above(node: Node, x: Expr, limit: float, yes: Expr, no: Expr) -> Expr:
    """`yes` where `x` is above `limit`, else `no`."""
    above = node.emit("greater", x, node.scalar(limit, node.dtype(0)))
    return node.emit("where", above, yes, no)


def _expm1(node: Node, x: Expr) -> Expr:
    """``eˣ - 1``."""
    return node.emit("subtract", node.emit("exp", x), node.scalar(1, node.dtype(0)))


def _times(node: Node, x: Expr, factor: float) -> Expr:
    """``factor · x``."""
    if factor == 1:
        return x
    return node.emit("multiply", x, node.scalar(factor, node.dtype(0)))


def _line(node: Node, slope: float, offset: float) -> Expr:
    """``slope · x + offset``, clamped to [0, 1]."""
    line = node.emit("add", _times(node, node[0], slope), node.scalar(offset, node.dtype(0)))
    return node.emit("clip", line, min=0.0, max=1.0)
