"""Products of matrices."""

from relax_egraph.frontends.torch.node import Node
from relax_egraph.frontends.torch.registry import converts
from relax_egraph.ir.expr import Expr


@converts("aten.mm.default", "aten.bmm.default", "aten.matmul.default")
def product(node: Node) -> Expr:
    """A product of matrices, or of stacks of matrices."""
    names = list(node.arguments)
    return node.emit("matmul", node[names[0]], node[names[1]])


@converts("aten.linear.default")
def linear(node: Node) -> Expr:
    """``input @ weight.T + bias``."""
    weight = node["weight"]
    turned = node.emit("permute_dims", weight) if node.rank("weight") == 2 else weight
    out = node.emit("matmul", node["input"], turned)
    bias = node.get("bias")
    return out if bias is None else node.emit("add", out, bias)
