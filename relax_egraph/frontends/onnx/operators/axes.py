"""Axes, which are attributes in older opsets and operands in newer ones."""

from relax_egraph.errors import ModelError
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.frontends.onnx.values import MOST_AXES
from relax_egraph.ir.expr import Expr


def axes_of(node: Node, place: int) -> tuple[int, ...] | Expr | None:
    """The axes of `node`, or a tensor that holds them at run time; ``None`` for all axes."""
    if node.attrs.has("axes"):
        return node.attrs.integers("axes")
    if not node.has(place):
        return None
    known = node.integers(place)
    if known is not None:
        return known
    return node[place] if count_of(node, place) != 0 else ()


def count_of(node: Node, place: int) -> int | None:
    """The number of axes, or extents, in operand `place`, if it is known."""
    shape = node.info(place).dims
    count = shape[0] if shape else None
    if isinstance(count, int) and count > MOST_AXES:
        raise ModelError(f"operand {place} names {count} axes: there are no more than {MOST_AXES}")
    return count if isinstance(count, int) else None
