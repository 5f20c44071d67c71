"""Operations that move elements and compute nothing."""

from collections.abc import Sequence

from relax_egraph.frontends.stablehlo.node import Node
from relax_egraph.frontends.stablehlo.registry import converts
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Constant, Expr, Tuple


@converts("stablehlo.reshape")
def reshape(node: Node) -> Expr:
    """The elements in another shape."""
    return node.reshaped(node[0], node.static_shape())


@converts("stablehlo.dynamic_reshape")
def dynamic_reshape(node: Node) -> Expr:
    """The elements in a shape that is an operand."""
    return node.reshaped(node[0], node.sizes(1))


@converts("stablehlo.transpose")
def transpose(node: Node) -> Expr:
    """The axes in another order."""
    return node.permuted(node[0], node.integers("permutation"))


@converts("stablehlo.broadcast_in_dim")
def broadcast_in_dim(node: Node) -> Expr:
    """The operand, whose axes are some of the result's, repeated along the others."""
    return _broadcast(node, node.static_shape())


@converts("stablehlo.dynamic_broadcast_in_dim")
def dynamic_broadcast_in_dim(node: Node) -> Expr:
    """The same, to a shape that is an operand."""
    return _broadcast(node, node.sizes(1))


@converts("stablehlo.broadcast")
def broadcast(node: Node) -> Expr:
    """The operand, repeated along new leading axes."""
    return node.broadcast(node[0], (*node.integers("broadcast_sizes"), *node.shape(0)))


def _broadcast(node: Node, shape: Sequence[Dim]) -> Expr:
    axes, extents = node.integers("broadcast_dimensions"), node.shape(0)
    if not axes and isinstance(node[0], Constant):
        return node.broadcast(node[0], shape)
    order = sorted(range(len(axes)), key=axes.__getitem__)
    operand = node.permuted(node[0], order)
    spread: list[Dim] = [1] * len(shape)
    for axis, extent in zip(axes, extents, strict=True):
        spread[axis] = extent
    same = len(spread) == len(shape) and all(map(dims.equal, spread, shape))
    whole = node.reshaped(operand, spread)
    return whole if same else node.broadcast(whole, shape)


@converts("stablehlo.concatenate")
def concatenate(node: Node) -> Expr:
    """The operands one behind the other along an axis."""
    operands = tuple(node[place] for place in range(len(node)))
    if len(operands) == 1:
        return operands[0]
    return node.emit("concat", Tuple(operands), axis=node.integer("dimension"))


@converts("stablehlo.reverse")
def reverse(node: Node) -> Expr:
    """The elements in reverse order along some axes."""
    value = node[0]
    for axis in node.integers("dimensions"):
        value = node.emit("flip", value, axis=axis)
    return value


@converts("stablehlo.optimization_barrier")
def barrier(node: Node) -> list[Expr]:
    """The operands: nothing is reordered over it that could be observed."""
    return [node[place] for place in range(len(node))]
