"""Powers: of floats, and exact powers of integers."""

from relax_egraph.frontends.building.builder import dtype_of
from relax_egraph.frontends.building.powers import power_of_integers
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.frontends.onnx.operators.alignment import aligned
from relax_egraph.frontends.onnx.registry import converts
from relax_egraph.ir.dtypes import computed, is_float
from relax_egraph.ir.expr import Expr


@converts("Pow")
def power(node: Node) -> Expr:
    """A power in the dtype of its base."""
    x, y = aligned(node)
    base, exponent = dtype_of(x), dtype_of(y)
    if base == exponent and is_float(base):
        return node.emit("power", x, y)
    if is_float(base):
        wide = "float64" if exponent == "float64" else computed(base)
        return node.cast(node.emit("power", node.cast(x, wide), node.cast(y, wide)), base)
    if is_float(exponent):
        return node.cast(_nearly_whole(node, x, y), base)
    return power_of_integers(node, x, y)


def _nearly_whole(node: Node, x: Expr, y: Expr) -> Expr:
    """A power of an integer in floats, rounded if it is within an error of an integer."""
    result = node.emit("power", node.cast(x, "float64"), node.cast(y, "float64"))
    whole = node.emit("round", result)
    error = node.emit("abs", node.emit("subtract", result, whole))
    allowed = node.emit("multiply", node.emit("abs", result), node.scalar(1e-14, "float64"))
    return node.emit("where", node.emit("less_equal", error, allowed), whole, result)
