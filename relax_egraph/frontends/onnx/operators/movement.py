"""Operators that reshape, permute and repeat elements."""

from collections.abc import Sequence

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import dtype_of, info_of
from relax_egraph.frontends.building.repetition import tiled
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.frontends.onnx.operators.axes import axes_of, count_of
from relax_egraph.frontends.onnx.registry import converts
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Expr, ShapeExpr, Tuple, const
from relax_egraph.ir.ops.broadcast import broadcast_shapes
from relax_egraph.ir.struct_info import TupleStructInfo, tensor


@converts("Transpose")
def transpose(node: Node) -> Expr:
    """A permutation of axes, by default the reverse."""
    axes = node.attrs.integers("perm") if node.attrs.has("perm") else None
    return node.emit("permute_dims", node[0], axes=axes)


@converts("Concat")
def concat(node: Node) -> Expr:
    """Concatenated tensors."""
    return node.emit("concat", Tuple(tuple(node.all())), axis=node.axis())


@converts("Flatten")
def flatten(node: Node) -> Expr:
    """A matrix: the axes before `axis`, and the others."""
    shape, rank = node.shape(0), node.rank(0)
    axis = node.attrs.integer("axis")
    if not -rank <= axis <= rank:
        raise ModelError(f"axis {axis} of a tensor of rank {rank}")
    place = axis + rank if axis < 0 else axis
    target_shape = (dims.product(shape[:place]), dims.product(shape[place:]))
    return node.emit("reshape", node[0], ShapeExpr(target_shape))


@converts("Reshape")
def reshape(node: Node) -> Expr:
    """The same elements in another shape; -1 stands for the rest, 0 for the own extent."""
    keeps = not node.attrs.schema_default("allowzero")
    if node.attrs.has("shape"):
        extents: list[Dim] = list(node.attrs.integers("shape"))
    elif (elements := node.elements(1)) is not None:
        extents = list(elements.dims)
    else:
        return _reshape_at_run_time(node, keeps)
    own = node.info(0).dims
    if own is None and (-1 in extents or (keeps and 0 in extents)):
        return _reshape_at_run_time(node, keeps)
    for axis, extent in enumerate(extents):
        if extent == 0 and keeps:
            extents[axis] = node.shape(0)[node.normalized(axis, node.rank(0))]
    if -1 in extents:
        place = extents.index(-1)
        others = dims.product(d for k, d in enumerate(extents) if k != place)
        if others == 0:
            raise ModelError("an extent of -1 is ambiguous beside an extent of 0")
        extents[place] = dims.floordiv(dims.product(node.shape(0)), others)
    return node.emit("reshape", node[0], ShapeExpr(tuple(extents)))


def _reshape_at_run_time(node: Node, keeps: bool) -> Expr:
    """A reshape by a shape tensor, with its 0 and -1 replaced at run time."""
    extents, count, rank = node[1], count_of(node, 1), node.rank(0)
    own = node.emit("shape_to_tensor", node.emit("shape_of", node[0]))
    zero, one, rest = (const([n], "int64") for n in (0, 1, -1))
    if keeps:
        if count is None:
            raise ModelError("how many extents the shape has is known only at run time")
        padding = const([1] * max(count - rank, 0), "int64")
        longer = node.emit("concat", Tuple((own, padding)), axis=0)
        begin, end = ShapeExpr((0,)), ShapeExpr((count,))
        aligned = node.emit("strided_slice", longer, begin, end, axes=(0,))
        extents = node.emit("where", node.emit("equal", extents, zero), aligned, extents)
    is_rest = node.emit("equal", extents, rest)
    others = node.emit("prod", node.emit("where", is_rest, one, extents), axis=None)
    total = node.emit("prod", own, axis=None)
    remainder = node.emit("floor_divide", total, others)
    shape = node.emit("where", is_rest, remainder, extents)
    return node.emit("reshape", node[0], node.emit("tensor_to_shape", shape))


@converts("Squeeze")
def squeeze(node: Node) -> Expr:
    """The tensor without axes of extent 1, by default without all of them."""
    axes = axes_of(node, 1)
    if axes is None or isinstance(axes, tuple):
        return node.emit("squeeze", node[0], axis=axes)
    count, rank = count_of(node, 1), node.info(0).ndim
    rank_left = rank - count if count is not None and rank >= 0 else -1
    return node.emit_late("squeeze", node[0], axis=axes, out=tensor(None, node.dtype(0), rank_left))


@converts("Unsqueeze")
def unsqueeze(node: Node) -> Expr:
    """The tensor with new axes of extent 1, counted in the result."""
    axes = axes_of(node, 1)
    if axes is None or isinstance(axes, tuple):
        return node.emit("expand_dims", node[0], axis=axes or ())
    count, rank = count_of(node, 1), node.info(0).ndim
    more = rank + count if count is not None and rank >= 0 else -1
    return node.emit_late("expand_dims", node[0], axis=axes, out=tensor(None, node.dtype(0), more))


@converts("Expand")
def expand(node: Node) -> Expr:
    """The broadcast of the operand and a shape."""
    own, elements = node.info(0).dims, node.elements(1)
    if own is not None and elements is not None:
        shape = broadcast_shapes(own, elements.dims)
        if shape is not None:
            return node.emit("broadcast_to", node[0], ShapeExpr(shape))
    every = node.emit("full", node.as_shape(1), const(True, "bool"))
    return node.emit("where", every, node[0], node[0])


@converts("Tile")
def tile(node: Node) -> Expr:
    """The operand repeated along each axis."""
    repeats = node.integers(1)
    if repeats is not None:
        return node.emit("tile", node[0], repeats=repeats)
    own = node.info(0).dims
    times = None if own is None else node.extents(1, len(own))
    if own is None or times is None:
        out = tensor(None, node.dtype(0), node.rank(0))
        return node.emit_late("tile", node[0], repeats=node[1], out=out)
    return tiled(node, node[0], times)


@converts("Split")
def split(node: Node) -> tuple[Expr, ...]:
    """Parts along an axis, with explicit extents or as equal as possible."""
    x, axis, count = node[0], node.axis(), len(node.outputs)
    sizes = node.attrs.integers("split") if node.attrs.has("split") else node.integers(1)
    if sizes is not None:
        bounds = tuple(sum(sizes[: k + 1]) for k in range(len(sizes) - 1))
        return node.fields(node.emit("split", x, indices_or_sections=bounds, axis=axis))
    if not node.has(1):
        return node.fields(node.emit("split", x, indices_or_sections=count, axis=axis))
    ends = node.emit("cumsum", node[1], axis=0)
    begin, end = ShapeExpr((0,)), ShapeExpr((count - 1,))
    bounds = node.emit("strided_slice", ends, begin, end, axes=(0,))
    part = tensor(None, dtype_of(x), info_of(x).ndim)
    out = TupleStructInfo((part,) * count)
    return node.fields(node.emit_late("split", x, indices_or_sections=bounds, axis=axis, out=out))


@converts("DepthToSpace")
def depth_to_space(node: Node) -> Expr:
    """Channels as pixels; `mode` selects whether channels or pixels vary faster in them."""
    n, c, h, w = node.shape(0)
    b = node.attrs.integer("blocksize")
    fewer = dims.floordiv(c, b * b)
    if node.attrs.schema_default("mode") == "CRD":
        split_shape, order = (n, fewer, b, b, h, w), (0, 1, 4, 2, 5, 3)
    else:
        split_shape, order = (n, b, b, fewer, h, w), (0, 3, 4, 1, 5, 2)
    pixels = node.emit("permute_dims", _reshaped(node, node[0], split_shape), axes=order)
    return _reshaped(node, pixels, (n, fewer, dims.mul(h, b), dims.mul(w, b)))


@converts("SpaceToDepth")
def space_to_depth(node: Node) -> Expr:
    """Pixels as channels."""
    n, c, h, w = node.shape(0)
    b = node.attrs.integer("blocksize")
    rows, columns = dims.floordiv(h, b), dims.floordiv(w, b)
    blocks = _reshaped(node, node[0], (n, c, rows, b, columns, b))
    order = (0, 1, 3, 5, 2, 4) if node.attrs.schema_default("mode") == "CRD" else (0, 3, 5, 1, 2, 4)
    channels = node.emit("permute_dims", blocks, axes=order)
    return _reshaped(node, channels, (n, dims.mul(c, b * b), rows, columns))


def _reshaped(node: Node, x: Expr, shape: Sequence[Dim]) -> Expr:
    return node.emit("reshape", x, ShapeExpr(tuple(shape)))
