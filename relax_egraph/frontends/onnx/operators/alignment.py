"""Alignment of the axes of two operands."""

from relax_egraph.frontends.onnx.node import Node
from relax_egraph.ir.expr import Expr


def aligned(node: Node) -> tuple[Expr, Expr]:
    """Both operands, aligned so that they broadcast from the last axis on.

    Below opset 7 the axes of the second may begin at the attribute `axis`.
    """
    if not node.attrs.has("axis"):
        return node[0], node[1]
    return node[0], beginning_at(node, node[1], node.axis())


def beginning_at(node: Node, y: Expr, axis: int) -> Expr:
    """`y` with trailing axes of extent 1, so its first axis aligns with `axis` of operand 0."""
    rank = node.rank(1)
    behind = node.rank(0) - axis - rank
    if behind <= 0:
        return y
    return node.emit("expand_dims", y, axis=tuple(range(rank, rank + behind)))
