"""Diagonals of matrices: triangles, reads and writes."""

from relax_egraph.frontends.building.borders import between
from relax_egraph.frontends.building.builder import dtype_of, shape_of
from relax_egraph.frontends.building.positions import counted
from relax_egraph.frontends.torch.node import Node
from relax_egraph.frontends.torch.registry import converts
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Expr, PrimValue, ShapeExpr


@converts("aten.tril.default", "aten.triu.default")
def triangle(node: Node) -> Expr:
    """The elements below or above a diagonal, which they include, and 0."""
    name = node.op.split(".")[1]
    return node.emit(name, node["self"], PrimValue(node.dim("diagonal")))


@converts("aten.diagonal.default")
def diagonal(node: Node) -> Expr:
    """A diagonal of the matrices that two axes make, as the last axis."""
    x = _axes_last(node, node["self"], _two_axes(node, node.rank("self")))
    *rest, rows, columns = shape_of(x)
    offset, count = node.integer("offset"), node.out_shape[-1]
    flat = node.reshaped(x, (*rest, dims.mul(rows, columns)))
    first = offset if offset >= 0 else dims.mul(-offset, columns)
    if count == 0:
        return node.emit("zeros", ShapeExpr(node.out_shape), dtype=node.out_dtype)
    axis = len(rest)
    if isinstance(columns, int):
        last = dims.add(first, dims.mul(dims.sub(count, 1), columns + 1))
        bounds = ShapeExpr((first,)), ShapeExpr((dims.add(last, 1),))
        return node.emit("strided_slice", flat, *bounds, axes=(axis,), strides=(columns + 1,))
    step = node.as_tensor(dims.add(columns, 1), "int64")
    steps = node.emit("multiply", counted(node, count), step)
    places = node.emit("add", steps, node.as_tensor(first, "int64"))
    return node.emit("take", flat, places, axis=axis)


@converts("aten.diag_embed.default")
def diag_embed(node: Node) -> Expr:
    """Matrices with the last axis as a diagonal, and 0."""
    axes = _two_axes(node, len(node.out_shape))
    size, offset = node.out_shape[axes[0]], node.integer("offset")
    spread = _spread(node, node["self"], size, size, offset)
    zero = node.scalar(0, node.out_dtype)
    matrices = node.emit("where", _on_diagonal(node, size, size, offset), spread, zero)
    return _axes_back(node, matrices, axes)


@converts("aten.diagonal_scatter.default")
def diagonal_scatter(node: Node) -> Expr:
    """The operand with a diagonal of the matrices that two axes make written."""
    axes, offset = _two_axes(node, node.rank("self")), node.integer("offset")
    x = _axes_last(node, node["self"], axes)
    *_, rows, columns = shape_of(x)
    source = _spread(node, node.operand("src", dtype_of(x)), rows, columns, offset)
    matrices = node.emit("where", _on_diagonal(node, rows, columns, offset), source, x)
    return _axes_back(node, matrices, axes)


def _on_diagonal(node: Node, rows: Dim, columns: Dim, offset: int) -> Expr:
    numbers = map(PrimValue, (rows, columns, offset))
    return node.emit("eye", *numbers, dtype="bool")


def _spread(node: Node, values: Expr, rows: Dim, columns: Dim, offset: int) -> Expr:
    """`values` of a diagonal along the rows, or the columns if it begins below the first row."""
    axis = len(shape_of(values)) - 1
    below = offset < 0
    missing = dims.sub(columns if below else rows, shape_of(values)[axis])
    zero = node.scalar(0, dtype_of(values))
    whole = between(node, values, axis, 0, missing, zero)
    return node.emit("expand_dims", whole, axis=(axis if below else axis + 1,))


def _axes_last(node: Node, x: Expr, axes: tuple[int, ...]) -> Expr:
    rank = len(shape_of(x))
    order = (*(k for k in range(rank) if k not in axes), *axes)
    return x if order == tuple(range(rank)) else node.emit("permute_dims", x, axes=order)


def _axes_back(node: Node, x: Expr, axes: tuple[int, ...]) -> Expr:
    rank = len(shape_of(x))
    order = (*(k for k in range(rank) if k not in axes), *axes)
    if order == tuple(range(rank)):
        return x
    return node.emit("permute_dims", x, axes=tuple(order.index(k) for k in range(rank)))


def _two_axes(node: Node, rank: int) -> tuple[int, int]:
    return node.axis("dim1", rank), node.axis("dim2", rank)
