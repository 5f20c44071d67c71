"""Shifts of bits, and counts of them."""

from relax_egraph.frontends.building.builder import dtype_of
from relax_egraph.frontends.stablehlo.node import Node, like
from relax_egraph.frontends.stablehlo.registry import converts
from relax_egraph.ir.dtypes import is_signed
from relax_egraph.ir.expr import Expr


@converts("stablehlo.shift_left")
def shift_left(node: Node) -> Expr:
    """Bits moved up."""
    return node.emit("left_shift", node[0], node[1])


@converts("stablehlo.shift_right_arithmetic")
def shift_right(node: Node) -> Expr:
    """Bits moved down; the sign fills what is free."""
    dtype = node.dtype(0)
    x, y = (node.cast(node[place], dtype.removeprefix("u")) for place in (0, 1))
    return node.cast(node.emit("right_shift", x, y), dtype)


@converts("stablehlo.shift_right_logical")
def shift_right_logical(node: Node) -> Expr:
    """Bits moved down; zeros fill what is free."""
    dtype = node.dtype(0)
    x, y = (unsigned(node, node[place]) for place in (0, 1))
    return node.cast(node.emit("right_shift", x, y), dtype)


def unsigned(node: Node, value: Expr) -> Expr:
    """The bits of `value` as unsigned integers."""
    dtype = dtype_of(value)
    return node.cast(value, f"u{dtype}") if is_signed(dtype) else value


@converts("stablehlo.popcnt")
def count_ones(node: Node) -> Expr:
    """The number of bits that are set."""
    return node.cast(_ones(node, unsigned(node, node[0])), node.dtype(0))


@converts("stablehlo.count_leading_zeros")
def count_leading_zeros(node: Node) -> Expr:
    """The number of zeros above the highest bit that is set."""
    x = unsigned(node, node[0])
    width, shift = _width(x), 1
    while shift < width:
        x = node.emit("bitwise_or", x, node.emit("right_shift", x, like(shift, x)))
        shift *= 2
    return node.cast(_ones(node, node.emit("bitwise_not", x)), node.dtype(0))


def _width(x: Expr) -> int:
    return like(0, x).data.dtype.itemsize * 8


def _ones(node: Node, x: Expr) -> Expr:
    """The number of bits of unsigned `x` that are set: sums of pairs, then of fours."""
    width, step = _width(x), 1
    while step < width:
        mask = sum(((1 << step) - 1) << at for at in range(0, width, 2 * step))
        low = node.emit("bitwise_and", x, like(mask, x))
        shifted = node.emit("right_shift", x, like(step, x))
        high = node.emit("bitwise_and", shifted, like(mask, x))
        x = node.emit("add", low, high)
        step *= 2
    return x
