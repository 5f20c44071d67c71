"""Padding around elements and between them."""

from collections.abc import Sequence

from relax_egraph.frontends.building.builder import dtype_of
from relax_egraph.frontends.stablehlo.node import Node, number_of, shape_of
from relax_egraph.frontends.stablehlo.registry import converts
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Expr, Tuple

_EXACT = 2**53
"""Whole numbers below are numbers of float64, as attributes are."""


@converts("stablehlo.pad")
def pad(node: Node) -> Expr:
    """Padding of known width; a negative one cuts off elements."""
    low, high = node.integers("edge_padding_low"), node.integers("edge_padding_high")
    return padded(node, node[0], node[1], low, high, node.integers("interior_padding"))


@converts("stablehlo.dynamic_pad")
def dynamic_pad(node: Node) -> Expr:
    """Padding whose widths are operands."""
    return padded(node, node[0], node[1], node.sizes(2), node.sizes(3), node.known(4))


def padded(
    node: Node,
    value: Expr,
    fill: Expr,
    low: Sequence[Dim],
    high: Sequence[Dim],
    interior: Sequence[int] | None = None,
) -> Expr:
    """`value` with `fill` before, behind and between the elements along each axis."""
    for axis, between in enumerate(interior or ()):
        if between:
            value = _spread(node, value, fill, axis, between)
    value = _cut(node, value, low, high)
    low, high = [_positive(n) for n in low], [_positive(n) for n in high]
    widths = [n for pair in zip(low, high, strict=True) for n in pair]
    if all(n == 0 for n in widths):
        return value
    number = number_of(fill)
    known = tuple(n for n in widths if isinstance(n, int))
    exact = isinstance(number, float) or (number is not None and abs(number) < _EXACT)
    if number is not None and exact and len(known) == len(widths) and dtype_of(value) != "bool":
        return node.emit("nn.pad", value, pad_width=known, pad_value=float(number))
    for axis, (before, behind) in enumerate(zip(low, high, strict=True)):
        shape = shape_of(value)
        parts = [
            node.filled(fill, (*shape[:axis], n, *shape[axis + 1 :])) if n != 0 else None
            for n in (before, behind)
        ]
        whole = [p for p in (parts[0], value, parts[1]) if p is not None]
        if len(whole) > 1:
            value = node.emit("concat", Tuple(tuple(whole)), axis=axis)
    return value


def _spread(node: Node, value: Expr, fill: Expr, axis: int, between: int) -> Expr:
    """`value` with `between` elements `fill` between each two along `axis`."""
    shape = shape_of(value)
    extent = shape[axis]
    apart = node.reshaped(value, (*shape[: axis + 1], 1, *shape[axis + 1 :]))
    low = [0] * (len(shape) + 1)
    high = [between * (k == axis + 1) for k in range(len(shape) + 1)]
    apart = padded(node, apart, fill, low, high)
    whole = dims.mul(extent, between + 1)
    joined = node.reshaped(apart, (*shape[:axis], whole, *shape[axis + 1 :]))
    last = dims.maximum(dims.sub(whole, between), 0)
    return node.sliced(joined, [0] * len(shape), (*shape[:axis], last, *shape[axis + 1 :]))


def _cut(node: Node, value: Expr, low: Sequence[Dim], high: Sequence[Dim]) -> Expr:
    """`value` without what negative widths cut off."""
    begin = [dims.sub(0, n) if isinstance(n, int) and n < 0 else 0 for n in low]
    end = [
        dims.add(extent, n) if isinstance(n, int) and n < 0 else extent
        for extent, n in zip(shape_of(value), high, strict=True)
    ]
    return node.sliced(value, begin, end)


def _positive(width: Dim) -> Dim:
    return max(width, 0) if isinstance(width, int) else width
