"""Products of matrices."""

from relax_egraph.frontends.building.builder import info_of
from relax_egraph.frontends.torch.node import Node
from relax_egraph.frontends.torch.registry import converts
from relax_egraph.ir.expr import Expr


@converts("aten.mm.default", "aten.bmm.default", "aten.matmul.default")
def product(node: Node) -> Expr:
    """A product of matrices, or of stacks of matrices."""
    names = list(node.arguments)
    return node.emit("matmul", node[names[0]], node[names[1]])


@converts("aten.addmm.default", "aten.baddbmm.default", "aten.addbmm.default")
def added_product(node: Node) -> Expr:
    """``beta · self + alpha · (matrix product)``; a beta of 0 leaves NaN of `self` out.

    ``addbmm`` sums the products of a stack.
    """
    dtype = node.out_dtype
    left, right = (n for n in node.arguments if n not in ("self", "beta", "alpha"))
    out = node.emit("matmul", node[left], node[right])
    if ".addbmm." in node.op:
        out = node.emit("sum", out, axis=(0,))
    beta, alpha = node.arguments["beta"], node.arguments["alpha"]
    if alpha != 1:
        out = node.emit("multiply", out, node.as_tensor(alpha, dtype))
    if beta == 0:
        return out
    bias = node["self"]
    if beta != 1:
        bias = node.emit("multiply", bias, node.as_tensor(beta, dtype))
    return node.emit("add", out, bias)


@converts("aten.linear.default")
def linear(node: Node) -> Expr:
    """``input @ weight.T + bias``."""
    return affine(node, node["input"], node["weight"], node.get("bias"))


def affine(node: Node, x: Expr, weight: Expr, bias: Expr | None) -> Expr:
    """``x @ weight.T + bias``."""
    turned = node.emit("permute_dims", weight) if info_of(weight).ndim == 2 else weight
    out = node.emit("matmul", x, turned)
    return out if bias is None else node.emit("add", out, bias)
