"""Places of values in sorted sequences."""

from relax_egraph.frontends.building.builder import shape_of
from relax_egraph.frontends.torch.node import Node
from relax_egraph.frontends.torch.registry import converts
from relax_egraph.ir.expr import Expr


@converts("aten.bucketize.Tensor", "aten.bucketize.Scalar")
def bucketize(node: Node) -> Expr:
    """The number of boundaries below each element, or not above it."""
    return _bucketized(node, node["boundaries"], node.flag("right"))


@converts("aten.searchsorted.Tensor", "aten.searchsorted.Scalar")
def searchsorted(node: Node) -> Expr:
    """The same of sequences along the last axis; `sorter` has the places of their elements."""
    sequence, sorter = node["sorted_sequence"], node.get("sorter")
    right = node.flag("right") or node.arguments["side"] == "right"
    axis = len(shape_of(sequence)) - 1
    if sorter is not None:
        sequence = node.emit("gather_elements", sequence, node.cast(sorter, "int64"), axis=axis)
    if axis == 0:
        return _bucketized(node, sequence, right)
    dtype = node.common_dtype("sorted_sequence", "self")
    rows = node.emit("expand_dims", node.cast(sequence, dtype), axis=(axis,))
    values = node.emit("expand_dims", node.operand("self", dtype), axis=(axis + 1,))
    above = node.emit("greater" if right else "greater_equal", rows, values)
    below = node.cast(node.emit("logical_not", above), node.out_dtype)
    return node.emit("sum", below, axis=(axis + 1,))


def _bucketized(node: Node, boundaries: Expr, right: bool) -> Expr:
    name = "boundaries" if "boundaries" in node.arguments else "sorted_sequence"
    dtype = node.common_dtype(name, "self")
    values = node.operand("self", dtype)
    as_int32 = node.flag("out_int32")
    return node.emit(
        "bucketize", values, node.cast(boundaries, dtype), out_int32=as_int32, right=right
    )
