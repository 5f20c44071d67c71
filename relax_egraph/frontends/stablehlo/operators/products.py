"""Products of matrices and tensors."""

from collections.abc import Sequence

from jaxlib.mlir.dialects import stablehlo

from relax_egraph.frontends.stablehlo.node import Node, shape_of
from relax_egraph.frontends.stablehlo.registry import converts
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Expr


@converts("stablehlo.dot")
def dot(node: Node) -> Expr:
    """A product of vectors and matrices."""
    x, y = (node.cast(node[place], node.out_dtype) for place in (0, 1))
    return node.emit("matmul", x, y)


@converts("stablehlo.dot_general")
def dot_general(node: Node) -> Expr:
    """A product over some axes, for each index of the batch axes: ``(batch…, left…, right…)``."""
    numbers = stablehlo.DotDimensionNumbers(node.attribute("dot_dimension_numbers"))
    x, y = (node.cast(node[place], node.out_dtype) for place in (0, 1))
    batch = tuple(numbers.lhs_batching_dimensions), tuple(numbers.rhs_batching_dimensions)
    summed = tuple(numbers.lhs_contracting_dimensions), tuple(numbers.rhs_contracting_dimensions)
    left = _others(shape_of(x), (*batch[0], *summed[0]))
    right = _others(shape_of(y), (*batch[1], *summed[1]))
    whole = (
        *(shape_of(x)[k] for k in batch[0]),
        *(shape_of(x)[k] for k in left),
        *(shape_of(y)[k] for k in right),
    )
    x = node.permuted(x, (*batch[0], *left, *summed[0]))
    y = node.permuted(y, (*batch[1], *summed[1], *right))
    if not summed[0]:
        return _outer(node, x, y, len(batch[0]), whole)
    count = len(batch[0])
    x = _matrices(node, x, count, len(left), keep=not count)
    y = _matrices(node, y, count, len(summed[1]))
    return node.reshaped(node.emit("matmul", x, y), whole)


def _others(shape: Sequence[Dim], axes: Sequence[int]) -> list[int]:
    return [k for k in range(len(shape)) if k not in axes]


def _matrices(node: Node, value: Expr, batch: int, rows: int, *, keep: bool = False) -> Expr:
    """`value` as matrices of as many leading axes as `rows`, behind those of the batch.

    If `keep`, several axes of rows stay apart, as a product of matrices has them.
    """
    shape = shape_of(value)
    columns = shape[batch + rows :]
    first = shape[batch : batch + rows]
    if not (keep and rows > 1 and len(columns) == 1):
        first = (dims.product(first),)
    return node.reshaped(value, (*shape[:batch], *first, dims.product(columns)))


def _outer(node: Node, x: Expr, y: Expr, batch: int, whole: Sequence[Dim]) -> Expr:
    """The products of all pairs of elements."""
    shape = shape_of(x)
    spread = (*shape, *(1 for _ in shape_of(y)[batch:]))
    turned = (*shape_of(y)[:batch], *(1 for _ in shape[batch:]), *shape_of(y)[batch:])
    product = node.emit("multiply", node.reshaped(x, spread), node.reshaped(y, turned))
    return node.broadcast(product, whole)
