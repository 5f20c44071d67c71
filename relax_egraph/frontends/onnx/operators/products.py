"""Matrix products."""

from relax_egraph.frontends.onnx.node import Node
from relax_egraph.frontends.onnx.registry import converts
from relax_egraph.ir.expr import Expr


@converts("MatMul")
def matmul(node: Node) -> Expr:
    """A matrix product like numpy's ``@``."""
    return node.emit("matmul", node[0], node[1])


@converts("Gemm")
def gemm(node: Node) -> Expr:
    """``alpha · A' · B' + beta · C``, where a matrix may be transposed."""
    a, b = node[0], node[1]
    dtype = node.dtype(0)
    if node.attrs.integer("transA"):
        a = node.emit("permute_dims", a)
    if node.attrs.integer("transB"):
        b = node.emit("permute_dims", b)
    out = node.emit("matmul", a, b)
    alpha, beta = node.attrs.number("alpha"), node.attrs.number("beta")
    if alpha != 1:
        out = node.emit("multiply", out, node.scalar(alpha, dtype))
    c = node.get(2)
    if c is None or beta == 0:
        return out
    if beta != 1:
        c = node.emit("multiply", c, node.scalar(beta, dtype))
    return node.emit("add", out, c)
