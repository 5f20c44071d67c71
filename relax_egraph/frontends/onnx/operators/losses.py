"""Losses of classes."""

from relax_egraph.errors import ModelError
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.frontends.onnx.registry import converts
from relax_egraph.ir.expr import Expr
from relax_egraph.ir.ops.loss import REDUCTIONS

_NO_CLASS = -(2**31)
"""An index to be ignored that no target is."""


@converts("NegativeLogLikelihoodLoss")
def likelihood(node: Node) -> Expr:
    """Of each target, the logarithm of its probability with the opposite sign."""
    return _loss(node, node[0])


@converts("SoftmaxCrossEntropyLoss")
def cross_entropy(node: Node) -> tuple[Expr, ...]:
    """The same of scores; the logarithms of their probabilities are output 1."""
    logarithms = node.emit("nn.log_softmax", node[0], axis=1)
    return _loss(node, logarithms), logarithms


def _loss(node: Node, logarithms: Expr) -> Expr:
    reduction = node.attrs.text("reduction")
    if reduction not in REDUCTIONS:
        raise ModelError(f"its reduction is {reduction!r}, needs one of {', '.join(REDUCTIONS)}")
    ignored = node.attrs.schema_default("ignore_index")
    weights = [node[2]] if node.has(2) else []
    return node.emit(
        "nn.nll_loss",
        logarithms,
        node[1],
        *weights,
        reduction=reduction,
        ignore_index=_NO_CLASS if ignored is None else ignored,
    )
