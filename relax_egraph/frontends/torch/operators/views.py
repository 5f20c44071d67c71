"""Operators that change only how elements are read."""

from relax_egraph.frontends.torch.node import Node
from relax_egraph.frontends.torch.registry import converts
from relax_egraph.ir.expr import Expr


@converts("aten.view.default", "aten.reshape.default", "aten._unsafe_view.default")
def reshape(node: Node) -> Expr:
    """The elements in another shape."""
    return node.reshaped(node["self"], node.out_shape)


@converts("aten.clone.default", "aten.detach.default", "aten.alias.default")
def same(node: Node) -> Expr:
    """The operand: values have no identity here."""
    return node["self"]


@converts("aten.permute.default")
def permute(node: Node) -> Expr:
    """Axes in another order."""
    rank = node.rank("self")
    axes = tuple(axis % max(rank, 1) for axis in node.integers("dims"))
    return node.emit("permute_dims", node["self"], axes=axes)
