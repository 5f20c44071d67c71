"""Determinants."""

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import dtype_of, info_of
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.frontends.onnx.registry import converts
from relax_egraph.ir.expr import Expr, PrimValue, ShapeExpr

_MOST = 16
"""The maximal number of rows: elimination is unrolled row by row."""


@converts("Det")
def determinant(node: Node) -> Expr:
    """The product of the pivots of an elimination with partial pivoting."""
    shape = node.shape(0)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ModelError("its operand is of no square matrices")
    size = shape[-1]
    if not isinstance(size, int) or not 1 <= size <= _MOST:
        raise ModelError(f"its matrices have {size} rows, needs a known number from 1 to {_MOST}")
    x = node[0]
    product: Expr | None = None
    for rows in range(size, 1, -1):
        pivot, x = _eliminate(node, x, rows)
        product = pivot if product is None else node.emit("multiply", product, pivot)
    last = node.emit("squeeze", x, axis=(-2, -1))
    return last if product is None else node.emit("multiply", product, last)


def _eliminate(node: Node, x: Expr, rows: int) -> tuple[Expr, Expr]:
    """The first pivot of `x`, with the sign of its exchange, and the remaining matrix."""
    zero, one = node.scalar(0, dtype_of(x)), node.scalar(1, dtype_of(x))
    column = node.emit("squeeze", _part(node, x, -1, 0, 1), axis=-1)
    place = node.emit("argmax", node.emit("abs", column), axis=-1, keepdims=True)
    places = node.emit("arange", PrimValue(rows), dtype="int64")
    is_pivot = node.emit("expand_dims", node.emit("equal", places, place), axis=-1)
    above = node.emit("sum", node.emit("where", is_pivot, x, zero), axis=-2, keepdims=True)
    below = _part(node, node.emit("where", is_pivot, _part(node, x, -2, 0, 1), x), -2, 1, rows)
    pivot = _part(node, above, -1, 0, 1)
    is_none = node.emit("equal", pivot, zero)
    divisor = node.emit("where", is_none, one, pivot)
    factor = node.emit("divide", _part(node, below, -1, 0, 1), divisor)
    update = node.emit("multiply", factor, _part(node, above, -1, 1, rows))
    remainder = node.emit("subtract", _part(node, below, -1, 1, rows), update)
    stays = node.emit("equal", place, node.scalar(0, "int64"))
    flat = node.emit("squeeze", pivot, axis=-1)
    signed = node.emit("where", stays, flat, node.emit("negative", flat))
    return node.emit("squeeze", signed, axis=-1), remainder


def _part(node: Node, x: Expr, axis: int, begin: int, end: int) -> Expr:
    cut = ShapeExpr((begin,)), ShapeExpr((end,))
    return node.emit("strided_slice", x, *cut, axes=(axis % info_of(x).ndim,))
