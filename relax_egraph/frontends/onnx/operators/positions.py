"""Dimensions from tensors, and tensors from dimensions."""

from collections.abc import Sequence

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import info_of
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Expr, ShapeExpr
from relax_egraph.ir.struct_info import ShapeStructInfo


def extent_of(node: Node, place: int) -> Dim:
    """The number in operand `place`, of one element; a new symbol if it is known at run time."""
    (extent,) = extents_of(node, place)
    return extent


def extents_of(node: Node, place: int) -> Sequence[Dim]:
    """The nonnegative numbers in operand `place`; new symbols if they are known at run time."""
    elements = node.elements(place)
    if elements is not None:
        return elements.dims
    operand = node[place]
    if node.rank(place) == 0:
        operand = node.emit("reshape", operand, ShapeExpr((1,)))
    return symbols_of(node, operand)


def symbols_of(node: Node, extents: Expr) -> Sequence[Dim]:
    """Symbols for the elements of a tensor of rank 1, nonnegative and of known number."""
    (count,) = info_of(extents).dims or (None,)
    if not isinstance(count, int):
        raise ModelError("the number of extents is known only at run time")
    symbols = tuple(node.frame.model.symbols.computed(f"{node.op}_{k}") for k in range(count))
    shape = node.emit("tensor_to_shape", node.cast(extents, "int64"))
    node.scope.bb.emit_match_cast(shape, ShapeStructInfo(symbols))
    return symbols
