"""Images from the columns of their windows."""

from collections.abc import Sequence
from functools import reduce

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import dtype_of
from relax_egraph.frontends.building.dim_tensors import number_of
from relax_egraph.frontends.building.positions import counted
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.frontends.onnx.operators.positions import extents_of, symbols_of
from relax_egraph.frontends.onnx.operators.windows import per_axis
from relax_egraph.frontends.onnx.registry import converts
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Expr, ShapeExpr, const


@converts("Col2Im")
def image_of_columns(node: Node) -> Expr:
    """The image from its windows in columns; overlapping windows are summed."""
    image, block = extents_of(node, 1), extents_of(node, 2)
    rank = len(image)
    if len(block) != rank:
        raise ModelError(f"its image has {rank} extents, its blocks {len(block)}")
    counts, channels = _counts(node, image, block), _channels(node, block)
    place, is_inside = _image_places(node, image, block, counts)
    batch, _, columns = node.shape(0)
    each = (batch, channels, dims.mul(dims.product(block), columns))
    zero = node.scalar(0, dtype_of(node[0]))
    inside, place = (
        node.emit("reshape", x, ShapeExpr((1, 1, each[2]))) for x in (is_inside, place)
    )
    updates = node.emit("reshape", node[0], ShapeExpr(each))
    updates = node.emit("where", inside, updates, zero)
    indices = node.emit("broadcast_to", place, ShapeExpr(each))
    empty = ShapeExpr((batch, channels, dims.product(image)))
    blank = node.emit("zeros", empty, dtype=dtype_of(node[0]))
    summed = node.emit("scatter_elements", blank, indices, updates, axis=2, reduction="add")
    return node.emit("reshape", summed, ShapeExpr((batch, channels, *image)))


def _channels(node: Node, block: Sequence[Dim]) -> Dim:
    """The number of channels: each column contains a block of every channel."""
    columns, size = node.shape(0)[1], dims.product(block)
    if isinstance(columns, int) and isinstance(size, int):
        return dims.floordiv(columns, size)
    whole, part = (node.emit("shape_to_tensor", ShapeExpr((e,))) for e in (columns, size))
    (count,) = symbols_of(node, node.emit("floor_divide", whole, part))
    return count


def _counts(node: Node, image: Sequence[Dim], block: Sequence[Dim]) -> Sequence[Dim]:
    """The number of windows along each axis; run-time numbers become new symbols."""
    rank = len(image)
    strides, dilations, pads = _moves(node, rank)
    spans: list[Dim] = []
    for axis in range(rank):
        reach = dims.mul(dims.sub(block[axis], 1), dilations[axis])
        whole = dims.add(image[axis], pads[axis] + pads[rank + axis])
        spans.append(dims.sub(dims.sub(whole, 1), reach))
    known = [span for span in spans if isinstance(span, int)]
    if len(known) == rank:
        return [span // stride + 1 for span, stride in zip(known, strides, strict=True)]
    last = node.emit("shape_to_tensor", ShapeExpr(tuple(spans)))
    steps = node.emit("floor_divide", last, const(list(strides), "int64"))
    return symbols_of(node, node.emit("add", steps, node.scalar(1, "int64")))


def _moves(node: Node, rank: int) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Strides, dilations, and padding before all axes, then after them."""
    strides, dilations = per_axis(node, "strides", rank), per_axis(node, "dilations", rank)
    return strides, dilations, per_axis(node, "pads", 2 * rank, default=0)


def _image_places(
    node: Node, image: Sequence[Dim], block: Sequence[Dim], counts: Sequence[Dim]
) -> tuple[Expr, Expr]:
    """The flat index into the image of each element of each window, and whether it is inside."""
    rank = len(image)
    strides, dilations, pads = _moves(node, rank)
    places: list[Expr] = []
    conditions: list[Expr] = []
    zero = node.scalar(0, "int64")
    for axis in range(rank):
        inner = _times(node, counted(node, block[axis], axis, 2 * rank), dilations[axis])
        outer = _times(node, counted(node, counts[axis], rank + axis, 2 * rank), strides[axis])
        place = node.emit("add", inner, outer)
        if pads[axis]:
            place = node.emit("subtract", place, node.scalar(pads[axis], "int64"))
        conditions.append(node.emit("greater_equal", place, zero))
        conditions.append(node.emit("less", place, number_of(node, image[axis], "int64")))
        behind = number_of(node, dims.product(image[axis + 1 :]), "int64")
        places.append(node.emit("multiply", place, behind))
    is_inside = reduce(lambda a, b: node.emit("logical_and", a, b), conditions)
    flat = reduce(lambda a, b: node.emit("add", a, b), places)
    return node.emit("where", is_inside, flat, zero), is_inside


def _times(node: Node, x: Expr, factor: int) -> Expr:
    return x if factor == 1 else node.emit("multiply", x, node.scalar(factor, "int64"))
