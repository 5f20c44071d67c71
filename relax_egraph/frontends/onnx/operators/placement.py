"""Parts of tensors: crops, writes to caches, and sampling positions of images."""

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import dtype_of, info_of
from relax_egraph.frontends.building.positions import along, counted
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.frontends.onnx.operators.positions import extents_of
from relax_egraph.frontends.onnx.registry import converts
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Expr, PrimValue, ShapeExpr


@converts("CenterCropPad")
def center_crop_pad(node: Node) -> Expr:
    """The middle of the operand along some axes, padded with 0 if it is too short."""
    x, rank = node[0], node.rank(0)
    selected = node.attrs.integers("axes") if node.attrs.has("axes") else range(rank)
    axes = [node.normalized(a, rank) for a in selected]
    extents = extents_of(node, 1)
    if len(extents) != len(axes):
        raise ModelError(f"its shape has {len(extents)} extents for {len(axes)} axes")
    for axis, extent in zip(axes, extents, strict=True):
        x = _centered(node, x, axis, node.shape(0)[axis], extent)
    return x


def _centered(node: Node, x: Expr, axis: int, extent: Dim, target: Dim) -> Expr:
    """`x` centered along an axis: `wanted` in place of `have` elements."""
    if dims.equal(extent, target):
        return x
    fewer, more = dims.sub(extent, target), dims.sub(target, extent)
    if dims.prove_ge(fewer, 0):
        begin = dims.floordiv(fewer, 2)
        cut = ShapeExpr((begin,)), ShapeExpr((dims.add(begin, target),))
        return node.emit("strided_slice", x, *cut, axes=(axis,))
    if isinstance(more, int):
        widths = [0] * (2 * node.rank(0))
        widths[2 * axis : 2 * axis + 2] = more // 2, more - more // 2
        return node.emit("nn.pad", x, pad_width=tuple(widths))
    before = dims.floordiv(dims.maximum(more, 0), 2)
    begin = dims.sub(dims.floordiv(dims.maximum(fewer, 0), 2), before)
    first, last = PrimValue(begin), PrimValue(dims.add(begin, target))
    places = node.emit("arange", first, last, dtype="int64")
    zero, end = node.scalar(0, "int64"), node.emit("shape_to_tensor", ShapeExpr((extent,)))
    is_inside = node.emit(
        "logical_and",
        node.emit("greater_equal", places, zero),
        node.emit("less", places, end),
    )
    selected = node.emit("take", x, node.emit("where", is_inside, places, zero), axis=axis)
    inside = along(node, is_inside, axis, node.rank(0))
    return node.emit("where", inside, selected, node.scalar(0, dtype_of(x)))


@converts("TensorScatter")
def tensor_scatter(node: Node) -> Expr:
    """A cache with an update written along an axis, at a position of its own for each batch."""
    cache, update, rank = node[0], node[1], node.rank(0)
    axis, mode = node.axis(), node.attrs.text("mode")
    if mode not in ("linear", "circular"):
        raise ModelError(f"its mode is {mode!r}, needs 'linear' or 'circular'")
    if axis == 0:
        raise ModelError("it writes along the axis of the batch")
    shape = node.shape(1)
    places = counted(node, shape[axis], axis, rank)
    if node.has(2):
        starts = along(node, node.cast(node[2], "int64"), 0, rank)
        places = node.emit("add", places, starts)
    if mode == "circular":
        length = node.emit("shape_to_tensor", ShapeExpr((node.shape(0)[axis],)))
        places = node.emit("floor_mod", places, length)
    every = node.emit("broadcast_to", places, ShapeExpr(shape))
    return node.emit("scatter_elements", cache, every, update, axis=axis)


@converts("AffineGrid")
def affine_grid(node: Node) -> Expr:
    """The sampling positions of an image or a volume, by an affine map for each."""
    size = extents_of(node, 1)
    rank = len(size) - 2
    if rank not in (2, 3):
        raise ModelError(f"its size has {len(size)} extents, needs 4 or 5")
    corners = bool(node.attrs.integer("align_corners"))
    target = ShapeExpr(tuple(size[2:]))
    grid = node.emit("image.affine_grid", node[0], target, align_corners=corners)
    rank = info_of(grid).ndim
    return node.emit("permute_dims", grid, axes=(0, *range(2, rank), 1))
