"""Clamping of elements to a range."""

import math

from relax_egraph.frontends.building.builder import info_of
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.frontends.onnx.registry import converts
from relax_egraph.ir.expr import Constant, Expr, ShapeExpr


@converts("Clip")
def clip(node: Node) -> Expr:
    """The elements clamped to [`min`, `max`]."""
    x = node[0]
    low, high = _bound(node, "min", 1), _bound(node, "max", 2)
    if low is None and high is None:
        return x
    least, most = _number(low, -math.inf), _number(high, math.inf)
    if least is not None and most is not None:
        return node.emit("clip", x, min=least, max=most)
    if low is not None:
        x = node.emit("maximum", x, low)
    return x if high is None else node.emit("minimum", x, high)


def _bound(node: Node, name: str, place: int) -> Expr | None:
    """A bound as a tensor of rank 0, if present; below opset 11 it is an attribute."""
    if node.version < 11:
        is_set = node.attrs.has(name)
        return node.scalar(node.attrs.number(name), node.dtype(0)) if is_set else None
    bound = node.get(place)
    if isinstance(bound, Constant) and bound.data.size == 1:
        return Constant(bound.data.reshape(()))
    if bound is None or info_of(bound).ndim == 0:
        return bound
    return node.emit("reshape", bound, ShapeExpr(()))


def _number(bound: Expr | None, unbounded: float) -> float | None:
    """A bound as a number, if it is constant and exact in float64."""
    if bound is None:
        return unbounded
    if not isinstance(bound, Constant):
        return None
    exact = bound.data.item()
    number = float(exact)
    return number if number == exact else None
