"""Gathers and scatters by index tensors, and positions of elements."""

from collections.abc import Mapping

from relax_egraph.errors import ModelError
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.frontends.onnx.registry import converts
from relax_egraph.ir.dtypes import is_integer
from relax_egraph.ir.expr import Expr, ShapeExpr
from relax_egraph.passes.drop_proven_checks import Range


def _checked(node: Node, *axes: int) -> Expr:
    """The indices in operand 1, checked at run time to be inside `axes` of operand 0.

    Indices that are proven to be inside are not checked.
    """
    extents, elements = node.info(0).dims, node.elements(1)
    if not is_integer(node.dtype(1)):
        return node[1]
    if extents is not None and elements is not None and len(axes) == 1:
        ranges = (Range(e, e) for e in elements.dims)
        if all(r.within(extents[axes[0]]) for r in ranges):
            return node[1]
    shape = node.emit("shape_of", node[0]) if extents is None else ShapeExpr(extents)
    return node.emit("check_indices", node[1], shape, axes=axes, operator=node.op)


def _checked_rows(node: Node, first: int = 0) -> Expr:
    """Like `_checked`, for rows of indices into axes from `first` on."""
    rows, rank = node.info(1).dims, node.info(0).ndim
    count = rows[-1] if rows else None
    axes = range(first, first + count if isinstance(count, int) else rank)
    return node[1] if not axes or 0 <= rank <= axes[-1] else _checked(node, *axes)


@converts("Gather")
def gather(node: Node) -> Expr:
    """Slices at indices along an axis."""
    axis = node.axis()
    return node.emit("take", node[0], _checked(node, axis), axis=axis)


@converts("GatherElements")
def gather_elements(node: Node) -> Expr:
    """Elements at indices along an axis."""
    axis = node.axis()
    return node.emit("gather_elements", node[0], _checked(node, axis), axis=axis)


@converts("GatherND")
def gather_nd(node: Node) -> Expr:
    """Slices at indices into leading axes."""
    batch = node.attrs.schema_default("batch_dims") or 0
    return node.emit("gather_nd", node[0], _checked_rows(node, batch), batch_dims=batch)


_REDUCTIONS: Mapping[str, str] = {
    "none": "update",
    "add": "add",
    "mul": "mul",
    "max": "max",
    "min": "min",
}


def _reduction(node: Node) -> str:
    reduction = node.attrs.schema_default("reduction") or "none"
    if reduction not in _REDUCTIONS:
        raise ModelError(f"its reduction is {reduction!r}")
    return _REDUCTIONS[reduction]


@converts("Scatter", "ScatterElements")
def scatter_elements(node: Node) -> Expr:
    """Elements written at indices along an axis."""
    axis, (data, _, updates) = node.axis(), node.all()
    indices = _checked(node, axis)
    reduction = _reduction(node)
    return node.emit("scatter_elements", data, indices, updates, axis=axis, reduction=reduction)


@converts("ScatterND")
def scatter_nd(node: Node) -> Expr:
    """Slices written at indices into leading axes."""
    data, _, updates = node.all()
    return node.emit("scatter_nd", data, _checked_rows(node), updates, reduction=_reduction(node))


@converts("NonZero")
def nonzero(node: Node) -> Expr:
    """The indices of the elements that are not 0, axis by axis."""
    return node.emit("nonzero", node[0])


@converts("Compress")
def compress(node: Node) -> Expr:
    """The slices along an axis, or the elements, where a condition holds."""
    whole = not node.attrs.has("axis")
    x = node.emit("flatten", node[0]) if whole else node[0]
    places = node.emit("squeeze", node.emit("nonzero", node[1]), axis=0)
    return node.emit("take", x, places, axis=0 if whole else node.axis())


@converts("Unique")
def unique(node: Node) -> tuple[Expr, ...]:
    """The distinct elements or slices, with first indices, inverse indices, and counts."""
    axis = node.axis() if node.attrs.has("axis") else None
    flags = ("return_index", "return_inverse", "return_counts")
    every = dict.fromkeys(flags, True)
    ordered = bool(node.attrs.integer("sorted"))
    return node.fields(node.emit("unique", node[0], sorted=ordered, axis=axis, **every))


@converts("ReverseSequence")
def reverse_sequence(node: Node) -> Expr:
    """The leading slices of each sequence in reverse order."""
    time, batch = node.attrs.integer("time_axis"), node.attrs.integer("batch_axis")
    return node.emit("reverse_sequence", node[0], node[1], seq_axis=time, batch_axis=batch)
