"""Classification losses."""

from relax_egraph.errors import ModelError
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.frontends.onnx.registry import converts
from relax_egraph.ir.expr import Expr
from relax_egraph.ir.ops.loss import REDUCTIONS

_NO_CLASS = -(2**31)
"""An ignored index that is no target."""


@converts("NegativeLogLikelihoodLoss")
def likelihood(node: Node) -> Expr:
    """The negated log-likelihood of each target."""
    return _loss(node, node[0])


@converts("SoftmaxCrossEntropyLoss")
def cross_entropy(node: Node) -> tuple[Expr, ...]:
    """The cross entropy of scores; their log-softmax is output 1."""
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
