"""Convolutions, transposed convolutions, and their gradients."""

from relax_egraph.frontends.building.builder import Builder, dtype_of, info_of
from relax_egraph.frontends.building.heads import shape_of
from relax_egraph.frontends.building.windows import SPATIAL, Windows
from relax_egraph.frontends.torch.node import Node
from relax_egraph.frontends.torch.registry import converts
from relax_egraph.frontends.torch.windows import per_axis
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.expr import Expr, ShapeExpr


@converts("aten.convolution.default")
def convolution(node: Node) -> Expr:
    """A convolution or a transposed one, with a bias of each channel."""
    rank = node.rank("input") - 2
    moves = _windows(node, rank)
    if node.flag("transposed"):
        out = _transposed(node, moves)
    else:
        out = convolved(node, node["input"], node["weight"], moves, node.integer("groups"))
    bias = node.get("bias")
    if bias is None:
        return out
    return node.emit("add", out, node.emit("expand_dims", bias, axis=tuple(range(1, rank + 1))))


def _windows(node: Node, rank: int) -> Windows:
    """The windows of a convolution."""
    strides, padding, dilations = (
        per_axis(node, name, rank) for name in ("stride", "padding", "dilation")
    )
    return Windows((1,) * rank, strides, dilations, padding, padding)
