"""Operators that change only how elements are read: their order, and axes of extent 1."""

from relax_egraph.frontends.building.builder import shape_of
from relax_egraph.frontends.torch.node import Node, normalized
from relax_egraph.frontends.torch.registry import converts
from relax_egraph.ir import dims
from relax_egraph.ir.expr import Expr, ShapeExpr, Tuple


@converts("aten.view.default", "aten.reshape.default", "aten._unsafe_view.default")
def reshape(node: Node) -> Expr:
    """The elements in another shape."""
    return node.reshaped(node["self"], node.out_shape)


@converts(
    "aten.alias.default",
    "aten.clone.default",
    "aten.contiguous.default",
    "aten.detach.default",
    "aten.lift_fresh.default",
    "aten.lift_fresh_copy.default",
)
def same(node: Node) -> Expr:
    """The operand: values have no identity here."""
    return node["self"]


@converts("aten.permute.default")
def permute(node: Node) -> Expr:
    """Axes in another order."""
    rank = node.rank("self")
    axes = tuple(axis % max(rank, 1) for axis in node.integers("dims"))
    return node.emit("permute_dims", node["self"], axes=axes)


@converts("aten.expand.default")
def expand(node: Node) -> Expr:
    """The operand, repeated along new leading axes and axes of extent 1."""
    return node.stretched(node["self"], node.out_shape)


@converts("aten.copy.default")
def copy(node: Node) -> Expr:
    """The source, with the shape and the dtype of the operand."""
    return node.stretched(node.operand("src", node.out_dtype), node.out_shape)


@converts("aten.squeeze.dim", "aten.squeeze.dims")
def squeeze(node: Node) -> Expr:
    """The operand without those of some axes that are of extent 1."""
    shape = node.shape("self")
    axes = (normalized(axis, len(shape)) for axis in node.integers("dim"))
    units = tuple(axis for axis in axes if shape and shape[axis] == 1)
    return node.emit("squeeze", node["self"], axis=units) if units else node["self"]


@converts("aten.unsqueeze.default")
def unsqueeze(node: Node) -> Expr:
    """A new axis of extent 1, counted in the result."""
    axis = node.axis("dim", node.rank("self") + 1)
    return node.emit("expand_dims", node["self"], axis=(axis,))


@converts("aten.flip.default")
def flip(node: Node) -> Expr:
    """The operand in reverse order along some axes."""
    x, rank = node["self"], node.rank("self")
    if rank == 0:
        return x
    for axis in node.integers("dims"):
        x = node.emit("flip", x, axis=normalized(axis, rank))
    return x


@converts("aten.roll.default")
def roll(node: Node) -> Expr:
    """The operand, moved along some axes, or along all of its elements, around the end."""
    shifts, axes = node.sizes("shifts"), node.integers("dims")
    shape = node.out_shape
    if any(extent == 0 for extent in shape) or not shape:
        return node["self"]
    if axes:
        x = node["self"]
        for shift, axis in zip(shifts, axes, strict=True):
            x = _rolled(node, x, shift, normalized(axis, len(shape)))
        return x
    flat = node.reshaped(node["self"], (dims.product(shape),))
    return node.reshaped(_rolled(node, flat, shifts[0], 0), shape)


def _rolled(node: Node, x: Expr, shift: dims.Dim, axis: int) -> Expr:
    """`x` with its elements `shift` places further along `axis`."""
    shape = shape_of(x)
    extent = shape[axis]
    count = dims.mod(shift, dims.maximum(extent, 1))
    if count == 0:
        return x
    cut, end = ShapeExpr((dims.sub(extent, count),)), ShapeExpr((extent,))
    head = node.emit("strided_slice", x, ShapeExpr((0,)), cut, axes=(axis,), assume_inbound=True)
    tail = node.emit("strided_slice", x, cut, end, axes=(axis,), assume_inbound=True)
    return node.emit("concat", Tuple((tail, head)), axis=axis)
