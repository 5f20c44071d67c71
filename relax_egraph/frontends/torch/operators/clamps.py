"""Clamping of elements to a range."""

import math

from relax_egraph.frontends.torch.node import Node
from relax_egraph.frontends.torch.registry import converts
from relax_egraph.ir.expr import Constant, Expr


@converts(
    "aten.clamp.default",
    "aten.clamp.Tensor",
    "aten.clamp_min.default",
    "aten.clamp_min.Tensor",
    "aten.clamp_max.default",
    "aten.clamp_max.Tensor",
    "aten.hardtanh.default",
)
def clamp(node: Node) -> Expr:
    """The elements clamped to [`min`, `max`], NaN if a bound is; `max` where the bounds cross."""
    names = ("min_val", "max_val") if ".hardtanh." in node.op else ("min", "max")
    x = node.operand("self", node.out_dtype)
    low, high = (node.operand(n, node.out_dtype) if node.has(n) else None for n in names)
    least, most = _number(low, -math.inf), _number(high, math.inf)
    if least is not None and most is not None and node.out_dtype != "bool":
        return node.emit("clip", x, min=least, max=most)
    if low is not None:
        x = node.emit("maximum", x, low)
    return x if high is None else node.emit("minimum", x, high)


def _number(bound: Expr | None, unbounded: float) -> float | None:
    """A bound as a number, if it is constant, exact in float64 and a number."""
    if bound is None:
        return unbounded
    if not isinstance(bound, Constant) or bound.data.ndim > 0:
        return None
    exact = bound.data.item()
    number = float(exact)
    return number if number == exact else None
