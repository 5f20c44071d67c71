"""Classification losses, and dropout."""

from relax_egraph.frontends.torch.node import Node
from relax_egraph.frontends.torch.registry import converts
from relax_egraph.ir.expr import Expr

_REDUCTIONS = ("none", "mean", "sum")


@converts("aten.nll_loss_forward.default", "aten.nll_loss2d_forward.default")
def likelihood(node: Node) -> tuple[Expr, Expr]:
    """The negated log-likelihood of each target, and the sum of the weights of all targets."""
    logarithms, target, weights = node["self"], node["target"], node.get("weight")
    dtype, ignored = node.out_dtype, node.integer("ignore_index")
    reduction = _REDUCTIONS[node.integer("reduction")]
    operands = (logarithms, target) if weights is None else (logarithms, target, weights)
    loss = node.emit("nn.nll_loss", *operands, reduction=reduction, ignore_index=ignored)
    zero = node.scalar(0, dtype)
    if reduction == "none":
        return loss, zero
    if weights is None:
        each: Expr = node.scalar(1, dtype)
    else:
        each = node.emit("take", weights, target, axis=0, mode="clip")
    counts = node.emit("not_equal", target, node.scalar(ignored, node.dtype("target")))
    return loss, node.emit("sum", node.emit("where", counts, each, zero))
