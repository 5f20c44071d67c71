"""Comparisons and logic: elementwise, boolean results."""

from collections.abc import Mapping

from relax_egraph.frontends.torch.node import Node
from relax_egraph.frontends.torch.registry import converts
from relax_egraph.ir.expr import Expr

_COMPARED: Mapping[str, str] = {
    "eq": "equal",
    "ge": "greater_equal",
    "gt": "greater",
    "le": "less_equal",
    "lt": "less",
    "ne": "not_equal",
}
_COMPARISONS = [f"aten.{name}.{kind}" for name in _COMPARED for kind in ("Tensor", "Scalar")]


@converts(*_COMPARISONS)
def compare(node: Node) -> Expr:
    """A comparison in the common dtype of the operands; booleans are 0 and 1."""
    name = _COMPARED[node.op.split(".")[1]]
    dtype = node.common_dtype("self", "other")
    if dtype == "bool":
        dtype = "uint8"
    return node.emit(name, node.operand("self", dtype), node.operand("other", dtype))


@converts("aten.logical_and.default", "aten.logical_or.default", "aten.logical_xor.default")
def logic(node: Node) -> Expr:
    """Logic of what is not 0."""
    name = node.op.split(".")[1]
    return node.emit(name, node.operand("self", "bool"), node.operand("other", "bool"))
