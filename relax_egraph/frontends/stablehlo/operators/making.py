"""Constants, sizes as tensors, and tensors of indices."""

from relax_egraph.frontends.building.elements import of_dims
from relax_egraph.frontends.stablehlo import tensors
from relax_egraph.frontends.stablehlo.node import Node
from relax_egraph.frontends.stablehlo.registry import converts
from relax_egraph.frontends.stablehlo.values import Value, of_expr
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Constant, Expr


@converts("stablehlo.constant", "chlo.constant")
def constant(node: Node) -> Value:
    """The tensor that is the attribute."""
    return of_expr(Constant(tensors.array_of(node.attribute("value"))))


@converts("stablehlo.get_dimension_size")
def dimension_size(node: Node) -> Value:
    """The size of an axis; sizes are arithmetic at import."""
    size = node.shape(0)[node.integer("dimension")]
    return Value(None, of_dims([size], (), node.out_dtype))


@converts("stablehlo.iota")
def iota(node: Node) -> Expr:
    """The index along an axis."""
    return _iota(node, node.static_shape())


@converts("stablehlo.dynamic_iota")
def dynamic_iota(node: Node) -> Expr:
    """The same, of a shape that is an operand."""
    return _iota(node, node.sizes(0))


def _iota(node: Node, shape: tuple[Dim, ...]) -> Expr:
    axis, dtype = node.integer("iota_dimension"), node.out_dtype
    spread = [1] * len(shape)
    flat = node.iota(shape[axis], dtype)
    return node.broadcast(
        node.reshaped(flat, (*spread[:axis], shape[axis], *spread[axis + 1 :])), shape
    )
