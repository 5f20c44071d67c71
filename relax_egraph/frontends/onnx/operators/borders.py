"""Constant borders whose widths are dimensions, symbolic or computed at run time."""

from collections.abc import Sequence

from relax_egraph.frontends.building.borders import between, without_ends
from relax_egraph.frontends.building.builder import dtype_of
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Attr, Expr, const


def add_border(node: Node, places: Sequence[int], fill: Attr | Expr) -> Expr | None:
    """The operand with a border of `fill` along the axes `places`.

    Operand 1 has all widths before the axes, then all widths after them; negative widths crop the
    operand.  ``None`` if its shape, or the number of widths, is unknown.
    """
    if node.info(0).dims is None:
        return None
    more, less = _widths(node, places)
    if more is None or less is None:
        return None
    x = node[0]
    dtype = dtype_of(x)
    value = node.cast(fill, dtype) if isinstance(fill, Expr) else const(fill or 0, dtype)
    for k, place in enumerate(places):
        behind = k + len(places)
        x = without_ends(node, x, place, less[k], less[behind])
        x = between(node, x, place, more[k], more[behind], value)
    return x


def _widths(
    node: Node, places: Sequence[int]
) -> tuple[tuple[Dim, ...] | None, tuple[Dim, ...] | None]:
    """The numbers of elements to add at each end, and to remove."""
    widths = node.elements(1)
    count = 2 * len(places)
    if widths is not None:
        if len(widths.dims) != count:
            return None, None
        less = (dims.canonical(-d) for d in widths.dims)
        return tuple(dims.maximum(d, 0) for d in widths.dims), tuple(
            dims.maximum(d, 0) for d in less
        )
    if node.info(1).dims != (count,):
        return None, None
    zero = node.scalar(0, node.dtype(1))
    more = node.emit("maximum", node[1], zero)
    less = node.emit("maximum", node.emit("negative", node[1]), zero)
    return node.extents_of(more, count), node.extents_of(less, count)
